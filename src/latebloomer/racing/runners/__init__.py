"""Where learners are trained."""

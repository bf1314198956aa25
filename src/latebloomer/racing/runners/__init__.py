"""Where learners are trained; `check_runner` checks a runner of your own."""

"""Real learners: race them, resume after anything, and keep the right one."""

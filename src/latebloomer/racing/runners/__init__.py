"""The runners, which train learners; `check_runner` checks your own runner."""

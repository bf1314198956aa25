"""The events of a race on disk."""

RACES = "races/"  # the folder where a race goes by default
ERROR, RESUME, NEW = IF_EXISTS = ("error", "resume", "new")  # what to do with a race that is there

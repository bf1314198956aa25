"""The common part of tuners and races in studies: one direction, and settings for the journal."""

from collections.abc import Mapping
from typing import Any

from latebloomer._util.text import plain_or_text
from latebloomer.errors import SettingError
from latebloomer.session.arm_views import SETTINGS


def need_one_direction(study: Any) -> None:
    """Raise a `SettingError` if a study has several objectives."""
    if len(study.directions) > 1:
        raise SettingError(f"the study has {len(study.directions)} directions, but a race needs 1")


def settings_details(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details to report with a score, so that the journal has the settings."""
    return {SETTINGS: {str(key): plain_or_text(value) for key, value in params.items()}}

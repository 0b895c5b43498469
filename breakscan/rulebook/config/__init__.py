"""The settings, from configuration files and the command-line options."""

from breakscan.rulebook.config.config_file import NearestSettings, load_settings
from breakscan.rulebook.config.keys import ConfigError
from breakscan.rulebook.config.settings import (
    REGIONS,
    WAYS,
    FileSettings,
    Regions,
    Settings,
    Target,
    check_targets,
    enabled_rules,
    installed_torch,
    library_of,
    resolve_target,
)

__all__ = [
    "REGIONS",
    "WAYS",
    "ConfigError",
    "FileSettings",
    "NearestSettings",
    "Regions",
    "Settings",
    "Target",
    "check_targets",
    "enabled_rules",
    "installed_torch",
    "library_of",
    "load_settings",
    "resolve_target",
]

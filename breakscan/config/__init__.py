"""The settings, from configuration files and the command-line options."""

from breakscan.config.errors import ConfigError
from breakscan.config.nearest import NearestSettings, load_settings
from breakscan.config.settings import REGIONS, WAYS, FileSettings, Regions, Settings, enabled_rules, library_of
from breakscan.config.target import Target, check_targets, installed_torch, resolve_target

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

"""Examples are counted, not timed: a machine that is busy with something else must not fail a law."""

from hypothesis import HealthCheck, settings

settings.register_profile("laws", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laws")

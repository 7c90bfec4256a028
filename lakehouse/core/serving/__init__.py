"""What a group of query nodes does, decided on plain values: load rules, placement, handoff and coverage."""

"""What every layer uses: errors, time, values, limits, settings."""

"""What must hold for rows before readers see them."""

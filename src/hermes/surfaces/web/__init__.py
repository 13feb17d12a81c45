"""What the surfaces that listen share: the names they go by, and slowing down those who guess."""

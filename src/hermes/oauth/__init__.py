"""What every sign-in in a browser needs: PKCE, and a port of this machine that the browser comes back to."""

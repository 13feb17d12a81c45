"""What every sign-in in a browser needs: PKCE, and a local port that receives the redirect."""

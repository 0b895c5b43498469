"""The language server: findings in an editor as code is typed."""

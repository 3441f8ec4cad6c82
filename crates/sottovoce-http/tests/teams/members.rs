//! Members: roles, grants, invitations and tokens

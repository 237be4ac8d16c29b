-- Run once, as the superuser, when the database of compose.yaml is made: the role `folio` owns the library, and nothing
-- else. What needs more, such as the extension, is done here.
\set password `cat /run/secrets/database_password`
CREATE ROLE folio LOGIN PASSWORD :'password';
CREATE DATABASE folio OWNER folio;
REVOKE CONNECT ON DATABASE postgres FROM PUBLIC;
-- From now on the superuser comes in over the socket in the container alone.
ALTER ROLE postgres PASSWORD NULL;
\connect folio
CREATE EXTENSION vector;

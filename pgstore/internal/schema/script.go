// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Default is the default name of the schema.
const Default = "mete"

// maxName is the maximum length of PostgreSQL's names in bytes. PostgreSQL truncates longer ones.
const maxName = 63

// special are characters with a meaning in function bodies and format strings.
const special = `'$\%`

// Check validates the name of a schema: 1 to 63 bytes of UTF-8, without the characters ' $ \ %. The prefix pg_ is
// reserved for PostgreSQL.
func Check(name string) error {
	switch {
	case name == "":
		return errors.New("schema: must not be empty")
	case len(name) > maxName:
		return fmt.Errorf("schema: %q: must not be longer than %d bytes", name, maxName)
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return fmt.Errorf("schema: %q: must be valid UTF-8 without zero bytes", name)
	case strings.ContainsAny(name, special):
		return fmt.Errorf("schema: %q: must not contain ' $ \\ %%", name)
	case strings.HasPrefix(name, "pg_"):
		return fmt.Errorf("schema: %q: must not begin with pg_, which PostgreSQL reserves", name)
	}
	return nil
}

// Quote returns the name as a quoted identifier.
func Quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// Qualify returns a statement with {schema} replaced by the quoted name.
func Qualify(statement, name string) string {
	return strings.ReplaceAll(statement, "{schema}", Quote(name))
}

// Advisory locks of migrations have two numbers: lockClass, which is "mete" in ASCII, and the FNV-1a hash of the
// schema's name.
const lockClass = 0x6d657465

func lockKey(name string) int32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int32(h.Sum32())
}

// SQL returns the work of [Migrate] as a script for psql. It can run repeatedly.
func SQL(name string) (string, error) {
	if err := Check(name); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;\n\n")
	b.WriteString(openSQL(name))
	for _, m := range migrations {
		b.WriteString(migrationSQL(m, name))
	}
	b.WriteString("COMMIT;\n")
	return b.String(), nil
}

// opening has the parameters lock class, lock key, schema name and quoted schema name.
//
// The transaction is read committed, so after waiting for the lock, it sees the migrations of the previous
// holder. A hanging connection does not block others for long. The lock timeout is short, because others would
// queue behind a waiting migration.
const opening = `SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL idle_in_transaction_session_timeout = '10s';
SELECT pg_advisory_xact_lock(%[1]d, %[2]d);
SET LOCAL lock_timeout = '5s';

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '%[3]s') THEN
		CREATE SCHEMA %[4]s;
	END IF;
END
$mete$;

CREATE TABLE IF NOT EXISTS %[4]s.migration (
	version    integer PRIMARY KEY,
	name       text NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT now()
);

`

// step has the parameters schema, version, name and text of a migration.
const step = `DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM %[1]s.migration WHERE version = %[2]d) THEN
		EXECUTE $migration$
%[4]s
$migration$;
		INSERT INTO %[1]s.migration (version, name) VALUES (%[2]d, '%[3]s');
	END IF;
END
$mete$;

`

// openSQL returns the first part of the transaction.
func openSQL(name string) string {
	return fmt.Sprintf(opening, lockClass, lockKey(name), name, Quote(name))
}

// migrationSQL returns the part of the transaction that applies a migration unless it is applied.
func migrationSQL(m migration, name string) string {
	return fmt.Sprintf(step, Quote(name), m.version, m.name, Qualify(strings.TrimSpace(m.text), name))
}

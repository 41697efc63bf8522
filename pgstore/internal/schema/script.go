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

// Default is the name of the schema unless another is chosen.
const Default = "mete"

// maxName is how long PostgreSQL's names may be, in bytes. It would cut off the
// rest of a longer one.
const maxName = 63

// special are what functions are quoted by and what they put texts together with:
// a name that is in them may have none.
const special = `'$\%`

// Check says whether a schema can have this name: 1 to 63 bytes of text without
// any of ' $ \ %, which does not begin with pg_, as PostgreSQL's own do.
func Check(name string) error {
	switch {
	case name == "":
		return errors.New("schema: must not be empty")
	case len(name) > maxName:
		return fmt.Errorf("schema: %q: must not be longer than %d bytes", name, maxName)
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return fmt.Errorf("schema: %q: must be text in UTF-8, and have no zero byte", name)
	case strings.ContainsAny(name, special):
		return fmt.Errorf("schema: %q: must have none of ' $ \\ %%", name)
	case strings.HasPrefix(name, "pg_"):
		return fmt.Errorf("schema: %q: must not begin with pg_, as PostgreSQL's own do", name)
	}
	return nil
}

// Quote returns the name as it stands in statements.
func Quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// In returns a statement with the schema's name in place of {schema}.
func In(statement, name string) string {
	return strings.ReplaceAll(statement, "{schema}", Quote(name))
}

// Locks of migrations have two numbers: lockClass, which are the letters of mete,
// and the FNV-1a hash of 32 bits of the schema's name.
const lockClass = 0x6d657465

func lockOf(name string) int32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int32(h.Sum32())
}

// SQL returns a script that makes the schema and all that is missing in it, for
// those who run such things themselves: with psql, and as often as they like. It
// is what [Migrate] does.
func SQL(name string) (string, error) {
	if err := Check(name); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;\n\n")
	b.WriteString(begun(name))
	for _, m := range migrations {
		b.WriteString(applying(m, name))
	}
	b.WriteString("COMMIT;\n")
	return b.String(), nil
}

// opening is for the numbers of the lock, the schema's name, and that as an
// identifier.
//
// Who waits for the lock sees what the one before it has done, as every statement
// of a transaction that is read committed sees what is there when it begins. Who
// lets its connection hang does not keep the others out for long. A table that is
// locked by another is not waited for long either: whoever comes to it after us
// waits as well.
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

// step is for the schema, and the version, name and text of a migration.
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

// begun is the first part of a transaction that makes the schema.
func begun(name string) string {
	return fmt.Sprintf(opening, lockClass, lockOf(name), name, Quote(name))
}

// applying is the part of it that applies a migration, unless it has been.
func applying(m migration, name string) string {
	return fmt.Sprintf(step, Quote(name), m.version, m.name, In(strings.TrimSpace(m.text), name))
}

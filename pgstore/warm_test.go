// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
)

// slowStart makes the first call of the function bucket_lock on each connection wait for a second.
const slowStart = `ALTER FUNCTION $s.bucket_lock(bytea[]) RENAME TO bucket_lock_warm;
CREATE FUNCTION $s.bucket_lock(bytea[]) RETURNS bytea[] LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objid = pg_backend_pid()) THEN
		PERFORM pg_advisory_lock(pg_backend_pid()), pg_sleep(1);
	END IF;
	RETURN $s.bucket_lock_warm($1);
END $$`

// Calls with a deadline succeed although the first call on each connection takes longer than the deadline.
func TestWarm_SlowStart(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	if _, err := pool.Exec(t.Context(), strings.ReplaceAll(slowStart, "$s", schema)); err != nil {
		t.Fatal(err)
	}
	s := open(t, poolNamed(t, schema), pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile})
	charges := of(tokens(t, 1000, "1/1h"), 1, "a", "b")
	until(t, func() error {
		_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{Within: time.Second / 2})
		if err == nil && !allowed {
			t.Error("a take is denied")
		}
		return err
	})
	if _, _, err := s.Take(t.Context(), nil, charges, mete.Mode{}); err != nil {
		t.Error(err)
	}
	if keys := lines(t, pool, "SELECT convert_from(key, 'UTF8') FROM "+schema+".bucket ORDER BY key"); fmt.Sprint(keys) != "[a b]" {
		t.Errorf("the warming left rows: %q", keys)
	}
	holdsAtMost := bucket.Tokens(998) * bucket.Token
	if snaps, _ := takes(t, s, of(charges[0].Limit, 0, "a"), mete.Mode{DryRun: true}); snaps[0].Remaining() > holdsAtMost {
		t.Errorf("%v tokens left, want at most %v", snaps[0].Remaining(), holdsAtMost)
	}
}

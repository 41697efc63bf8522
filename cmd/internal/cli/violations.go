// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/store"
)

// violationsTimeout is for one question: it may be about millions of rows.
const violationsTimeout = time.Minute

// A violationsCommand is one call of mete violations.
type violationsCommand struct {
	std     Streams
	options *pgxpool.Config
	schema  string
	query   violations.Query
	sum     bool
	format  string
}

// showViolations is "mete violations".
func showViolations(ctx context.Context, std Streams, args []string) int {
	c := violationsCommand{std: std}
	code, ok := c.parse(args)
	if !ok {
		return code
	}
	switch err := c.run(ctx); {
	case errors.Is(err, store.ErrUnavailable):
		return fail(std, exitUnreachable, "violations", err)
	case err != nil:
		return fail(std, exitUsage, "violations", c.explain(err))
	}
	return exitOK
}

// parse reads and checks the arguments. Where ok is false it has said why.
func (c *violationsCommand) parse(args []string) (code int, ok bool) {
	fs := newFlags(c.std, "violations")
	db := fs.String("db", "", "the `URL` of the PostgreSQL, as the servers have it in violations: postgres://HOST/DATABASE")
	since := fs.String("since", "24h", "show what is not older than a `TIME` such as 1h or 7d, or since 2026-11-21T08:00:00Z")
	until := fs.String("until", "", "show what is older than a `TIME`, written the same way")
	fs.StringVar(&c.query.Rule, "rule", "", "show what the rule of this `NAME` denied")
	fs.StringVar(&c.query.Key, "key", "", "show denials of the bucket with this `KEY`: as in bucket_view, per-client:ip=192.0.2.7, or as the column key shows it, ~AiF4ICxatfVsiOxjWbeiSg")
	fs.StringVar(&c.query.User, "user", "", "show denials of this `USER`: by name, or as the column user shows it")
	ip := fs.String("ip", "", "show denials of an `ADDRESS`, or of a network such as 192.0.2.0/24")
	fs.IntVar(&c.query.Limit, "limit", 0, fmt.Sprintf("show at most `N` rows (default %d), or groups of a kind (default %d)", violations.DefaultList, violations.DefaultTop))
	fs.StringVar(&c.format, "format", "text", "the `FORMAT` of the output: text, or json")
	operands, code, ok := fs.parse(args)
	if !ok {
		return code, false
	}
	switch {
	case len(operands) > 1:
		return fs.usageError("more than one of list and summary given: %q", operands), false
	case len(operands) == 1 && operands[0] != "list" && operands[0] != "summary":
		return fs.usageError("%q is neither list nor summary", operands[0]), false
	case *db == "":
		return fs.usageError("no --db given"), false
	case c.format != "text" && c.format != "json":
		return fs.usageError("unknown format %q: it must be text or json", c.format), false
	case c.query.Limit < 0 || c.query.Limit > violations.MaxList:
		return fs.usageError("--limit: must be between 1 and %d, not %d", violations.MaxList, c.query.Limit), false
	}
	c.sum = len(operands) == 1 && operands[0] == "summary"
	if err := c.resolve(*db, *since, *until, *ip, time.Now()); err != nil {
		return fs.usageError("%v", err), false
	}
	return exitOK, true
}

// resolve reads the flags that are more than text.
func (c *violationsCommand) resolve(db, since, until, ip string, now time.Time) error {
	options, config, err := pgstore.ParseURL(db)
	if err != nil {
		return fmt.Errorf("--db: %s", strings.TrimPrefix(err.Error(), "pgstore: url: "))
	}
	c.options, c.schema = options, config.Schema
	if c.query.Since, err = ago(since, now); err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	if c.query.Until, err = ago(until, now); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	if !c.query.Since.IsZero() && !c.query.Until.IsZero() && !c.query.Since.Before(c.query.Until) {
		return fmt.Errorf("--until: %q is not after --since %q", until, since)
	}
	if ip == "" {
		return nil
	}
	c.query.Network, err = netip.ParsePrefix(ip)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(ip); err != nil {
			return fmt.Errorf("--ip: %q is neither an address nor a network", ip)
		}
		a = a.Unmap().WithZone("")
		c.query.Network = netip.PrefixFrom(a, a.BitLen())
	}
	return nil
}

// ago reads an instant, or how long ago it was. Empty is the zero time.
func ago(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := bucket.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a duration, such as 90s, 1h or 7d, nor a time, such as 2026-11-21 or 2026-11-21T08:00:00Z", text)
}

// run asks and prints.
func (c *violationsCommand) run(ctx context.Context) error {
	pool, err := pgstore.Dial(ctx, c.options)
	if err != nil {
		return err
	}
	defer pool.Close()
	key, err := c.hashKey(ctx, pool)
	if err != nil {
		return err
	}
	reader, err := violations.NewReader(pool, violations.Config{Schema: c.schema, Key: key, Timeout: violationsTimeout})
	if err != nil {
		return err
	}
	if c.sum {
		s, err := reader.Summarize(ctx, c.query)
		if err != nil {
			return err
		}
		return c.printSummary(s)
	}
	list, err := reader.List(ctx, c.query)
	if err != nil {
		return err
	}
	return c.printList(list)
}

// hashKey is what a key or a user that is asked for is hashed with.
func (c *violationsCommand) hashKey(ctx context.Context, pool *pgxpool.Pool) ([]byte, error) {
	if !needsKey(c.query.Key) && !needsKey(c.query.User) {
		return nil, nil
	}
	if key := os.Getenv(hashKeyVar); key != "" {
		return []byte(key), nil
	}
	key, err := violations.DeriveKey(ctx, pool, c.schema)
	const insufficientPrivilege = "42501"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == insufficientPrivilege {
		return nil, fmt.Errorf("to look for a name, set %s to the servers' hash_key, or be allowed to read the table secret;"+
			" what is shown as ~… can be looked for without: %w", hashKeyVar, err)
	}
	return key, err
}

// needsKey reports whether what is asked for is not written as it is shown.
func needsKey(asked string) bool {
	const shown = 1 + 22 // a mark, and 128 bits in base64
	return asked != "" && !(strings.HasPrefix(asked, "~") && len(asked) == shown)
}

// explain says what to do about an error of the database.
func (c *violationsCommand) explain(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	const (
		undefinedTable    = "42P01"
		invalidSchemaName = "3F000"
	)
	if e.Code == undefinedTable || e.Code == invalidSchemaName {
		return fmt.Errorf("there are no violations in schema %s: 'mete serve --violations URL' makes the table; another schema is named by ?schema=NAME", c.schema)
	}
	return err
}

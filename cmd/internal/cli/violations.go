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
	"github.com/spf13/cobra"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/store"
)

// violationsTimeout bounds one query, which may read millions of rows.
const violationsTimeout = time.Minute

type violationsCommand struct {
	std     Streams
	options *pgxpool.Config
	schema  string
	query   violations.Query
	sum     bool
	format  string
}

const violationsAbout = `
Shows denied requests from the database in which servers with --violations
record them. "list" shows the newest first. "summary" shows the rules, keys,
users, addresses, endpoints and hours with the most denials. A row stands for
one request, or for several: the column "denials" has the number. Under attack,
requests of one key share rows.

Keys and users are stored as hashes, unless the servers set violations_raw. To
search for one, write it in plain text: the command hashes it with the
environment variable METE_HASH_KEY, which is the hash_key of the servers.
Without it, the command uses the secret in the database. Hashed databases hold
addresses as networks, /24 or /48, so a search for an address finds its network.

Exit codes:
  0  done, even if nothing is found
  2  wrong usage, or no table
  3  the database does not answer
`

// newViolationsCommand returns "mete violations". Without a subcommand it lists denials.
func newViolationsCommand(std Streams) *cobra.Command {
	c := &violationsCommand{std: std}
	var db, since, until, ip string
	run := func(summary bool) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return unknownCommand(cmd, args)
			case db == "":
				return usageError("no --db given")
			case c.query.Limit < 0 || c.query.Limit > violations.MaxList:
				return usageError("--count: must be between 1 and %d, not %d", violations.MaxList, c.query.Limit)
			}
			c.sum = summary
			if err := c.resolve(db, since, until, ip, time.Now()); err != nil {
				return usageError("%w", err)
			}
			switch err := c.run(cmd.Context()); {
			case errors.Is(err, store.ErrUnavailable):
				return fail(exitUnreachable, err)
			case err != nil:
				return fail(exitUsage, c.explain(err))
			}
			return nil
		}
	}
	cmd := &cobra.Command{
		Use: "violations [list | summary] --db URL [flags]", Short: "Show denied requests from a database", Long: violationsAbout,
		Args: cobra.ArbitraryArgs, RunE: run(false),
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "Show denied requests, the newest first", Args: noArgs, RunE: run(false)},
		&cobra.Command{Use: "summary", Short: "Show the rules, keys, users and hours with the most denials", Args: noArgs, RunE: run(true)},
	)
	fs := cmd.PersistentFlags()
	fs.StringVar(&db, "db", "", "the `URL` of the database, the same as violations of the servers: postgres://HOST/DATABASE")
	fs.StringVar(&since, "since", "24h", "show denials of the last `TIME` such as 1h or 7d, or since 2026-11-21T08:00:00Z")
	fs.StringVar(&until, "until", "", "show denials before a `TIME`, written the same way")
	fs.StringVar(&c.query.Rule, "rule", "", "show denials by the rule `NAME`")
	fs.StringVar(&c.query.Key, "key", "", "show denials of the bucket with this `KEY`: as in bucket_view, per-client:ip=192.0.2.7, or as the column key shows it, ~AiF4ICxatfVsiOxjWbeiSg")
	fs.StringVar(&c.query.User, "user", "", "show denials of this `USER`: by name, or as the column user shows it")
	fs.StringVar(&ip, "ip", "", "show denials of an `ADDRESS`, or of a network such as 192.0.2.0/24")
	fs.IntVar(&c.query.Limit, "count", 0, fmt.Sprintf("show at most `N` rows (default %d), or groups of a kind (default %d)", violations.DefaultList, violations.DefaultTop))
	completeRules(cmd)
	addPersistentFormat(cmd, &c.format, "text", "json")
	return cmd
}

// resolve parses the flags.
func (c *violationsCommand) resolve(db, since, until, ip string, now time.Time) error {
	options, config, err := pgstore.ParseURL(db)
	if err != nil {
		return fmt.Errorf("--db: %s", strings.TrimPrefix(err.Error(), "pgstore: url: "))
	}
	c.options, c.schema = options, config.Schema
	if c.query.Since, err = parseTime(since, now); err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	if c.query.Until, err = parseTime(until, now); err != nil {
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

// parseTime parses a time, or a duration before now. An empty text is the zero time.
func parseTime(text string, now time.Time) (time.Time, error) {
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

// hashKey returns the key for the hash of a key or user in the query.
func (c *violationsCommand) hashKey(ctx context.Context, pool *pgxpool.Pool) ([]byte, error) {
	if !isPlainText(c.query.Key) && !isPlainText(c.query.User) {
		return nil, nil
	}
	if key := os.Getenv(hashKeyVar); key != "" {
		return []byte(key), nil
	}
	key, err := violations.DeriveKey(ctx, pool, c.schema)
	const insufficientPrivilege = "42501"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == insufficientPrivilege {
		return nil, fmt.Errorf("to search for a name, set %s to the servers' hash_key, or get read access to the table secret;"+
			" searching for a hash (~…) needs neither: %w", hashKeyVar, err)
	}
	return key, err
}

// isPlainText reports whether a key or user is not yet a hash as shown in the output.
func isPlainText(asked string) bool {
	const shown = 1 + 22 // "~" and 128 bits in base64
	return asked != "" && !(strings.HasPrefix(asked, "~") && len(asked) == shown)
}

// explain adds a remedy to an error of the database.
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
		return fmt.Errorf("schema %s has no table of violations: 'mete serve --violations URL' creates it, and ?schema=NAME selects another schema", c.schema)
	}
	return err
}

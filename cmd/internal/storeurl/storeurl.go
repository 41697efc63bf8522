// SPDX-License-Identifier: Apache-2.0

// Package storeurl parses the URLs of stores. All commands use the same URLs.
package storeurl

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/rueidis"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/redisstore"
)

const (
	// DefaultEvery is the default interval between saves.
	DefaultEvery = time.Minute

	// Bounds of a positive Every.
	leastEvery = 10 * time.Millisecond
	mostEvery  = 24 * time.Hour
)

// Scheme identifies the kind of a store.
type Scheme string

const (
	Memory   Scheme = "memory"   // buckets in the process
	Redis    Scheme = "redis"    // redis, rediss, redis+unix, redis+sentinel, redis+cluster, …
	Postgres Scheme = "postgres" // postgres, postgresql
)

// Name returns the product name of a scheme.
func (s Scheme) Name() string {
	return map[Scheme]string{Memory: "memory", Redis: "Redis", Postgres: "PostgreSQL"}[s]
}

// A URL is a parsed URL of a store. Create it with [Parse].
type URL struct {
	Scheme Scheme

	// Memory configures the memory store.
	Memory memstore.Config

	// File is the path for saving and restoring the buckets of a memory store. Empty means no file.
	File string

	// Every is the interval between saves. 0 saves only on shutdown.
	Every time.Duration

	// Redis contains the arguments of [redisstore.Connect].
	Redis struct {
		Options rueidis.ClientOption
		Config  redisstore.Config
	}

	// Postgres contains the arguments of [pgstore.Connect].
	Postgres struct {
		Options *pgxpool.Config
		Config  pgstore.Config
	}

	shown string
}

// String returns the URL without users and passwords.
func (u *URL) String() string { return u.shown }

// Remote reports whether the store is outside of the process.
func (u *URL) Remote() bool { return u.Scheme != Memory }

const known = "?max_keys=N, file=PATH and every=TIME"

// Parse parses the URL of a store: memory:, with optional parameters as in memory:?max_keys=N&file=PATH&every=1m,
// a Redis or a PostgreSQL. Its errors contain no passwords.
func Parse(raw string) (*URL, error) {
	u, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return u, nil
}

// ParseIn is like [Parse] but resolves relative paths against dir.
func ParseIn(dir, raw string) (*URL, error) { return Parse(resolveIn(dir, raw)) }

// MustParse is like [Parse] but panics on an invalid URL.
func MustParse(raw string) *URL {
	u, err := Parse(raw)
	if err != nil {
		panic(err)
	}
	return u
}

// ParsePostgres parses a PostgreSQL URL and resolves relative paths against dir.
func ParsePostgres(dir, raw string) (*URL, error) {
	u, err := parsePostgres(resolveIn(dir, raw))
	if err != nil {
		return nil, err
	}
	return u, nil
}

func parse(raw string) (*URL, error) {
	switch {
	case isRedis(raw):
		u := &URL{Scheme: Redis, shown: hideSecrets(raw)}
		var err error
		u.Redis.Options, u.Redis.Config, err = redisstore.ParseURL(raw)
		return u, trimModule(err, "redisstore")
	case IsPostgres(raw):
		return parsePostgres(raw)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("not a URL: write memory: or memory:?max_keys=N, redis://localhost:6379 or postgres://localhost:5432/database")
	case u.Scheme == "memory":
		return parseMemory(u, raw)
	case u.Scheme == "":
		return nil, errors.New("unknown kind of store: write memory:, redis://HOST or postgres://HOST/DATABASE")
	}
	return nil, fmt.Errorf("%q: unknown kind of store: write memory:, redis://HOST or postgres://HOST/DATABASE", u.Scheme)
}

func parsePostgres(raw string) (*URL, error) {
	u := &URL{Scheme: Postgres, shown: hideSecrets(raw)}
	var err error
	u.Postgres.Options, u.Postgres.Config, err = pgstore.ParseURL(raw)
	return u, trimModule(err, "pgstore")
}

// trimModule removes the name of a module from the front of an error.
func trimModule(err error, module string) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), module+": url: "))
}

// IsPostgres reports whether raw looks like a PostgreSQL URL.
func IsPostgres(raw string) bool {
	kind, _, found := strings.Cut(raw, ":")
	return found && (kind == "postgres" || kind == "postgresql")
}

// isRedis reports whether raw looks like a Redis URL.
func isRedis(raw string) bool {
	kind, _, found := strings.Cut(raw, ":")
	return found && (kind == "redis" || kind == "rediss" || strings.HasPrefix(kind, "redis+") || strings.HasPrefix(kind, "rediss+"))
}

func parseMemory(u *url.URL, raw string) (*URL, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Host != "" || u.Path != "" || u.Opaque != "" || u.Fragment != "" {
		return nil, errors.New("memory: accepts only " + known + ", joined by &")
	}
	s := &URL{Scheme: Memory, Every: DefaultEvery, shown: raw}
	for name, values := range query {
		var err error
		switch {
		case len(values) != 1:
			err = fmt.Errorf("%s: must be set once", name)
		case name == "max_keys":
			s.Memory.MaxKeys, err = parseMaxKeys(values[0])
		case name == "file":
			if s.File = values[0]; s.File == "" {
				err = errors.New("file: must name a file")
			}
		case name == "every":
			s.Every, err = parseEvery(values[0])
		default:
			err = fmt.Errorf("memory: unknown parameter %q: only %s are known", name, known)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case s.File != "":
		return s, nil
	case query.Has("every"):
		return nil, errors.New("every: requires file=PATH")
	}
	s.Every = 0
	return s, nil
}

func parseMaxKeys(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("max_keys: %q: must be a whole number above 0", text)
	}
	return n, nil
}

func parseEvery(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := bucket.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("every: %q is not a duration: write a number and a unit, such as 30s or 1m, or 0 to save only at the end", text)
	case d != 0 && (d < leastEvery || d > mostEvery):
		return 0, fmt.Errorf("every: must be 0, or between %v and %v, not %v", leastEvery, mostEvery, d)
	}
	return d, nil
}

// SPDX-License-Identifier: Apache-2.0

// Package storeurl reads the URLs by which all commands name the store.
package storeurl

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/redisstore"
)

const (
	// DefaultEvery is the time between two saves where the URL says none.
	DefaultEvery = time.Minute

	// Every is 0 or lies between these.
	leastEvery = 10 * time.Millisecond
	mostEvery  = 24 * time.Hour
)

// A Store is a parsed URL of a store.
type Store struct {
	// Scheme is the scheme of the URL.
	Scheme string

	// Shown is the URL without users and passwords.
	Shown string

	// Memory are the settings of the memory store.
	Memory memstore.Config

	// File is where the buckets are saved, and restored from. Empty: nowhere.
	File string

	// Every is the time between two saves. 0: only at the end.
	Every time.Duration

	// Redis is the URL of a Redis, as [redisstore.ParseURL] reads it, and Postgres
	// that of a PostgreSQL, as [pgstore.ParseURL] does. At most one is there; where
	// both are empty, the store is in memory.
	Redis, Postgres string
}

// Remote is the URL of a store that is not in memory, and what people call that.
// Both are empty where it is.
func (s Store) Remote() (url, name string) {
	switch {
	case s.Redis != "":
		return s.Redis, "Redis"
	case s.Postgres != "":
		return s.Postgres, "PostgreSQL"
	}
	return "", ""
}

// known are the parameters of memory:.
const known = "?max_keys=N, file=PATH and every=TIME"

// String returns the URL without users and passwords.
func (s Store) String() string { return s.Shown }

// HasScheme reports whether the URL has a scheme. One that ends with "+" stands for all that
// begin so.
func (s Store) HasScheme(scheme string) bool {
	return s.Scheme == scheme || strings.HasSuffix(scheme, "+") && strings.HasPrefix(s.Scheme, scheme)
}

// Parse returns the store that raw names: memory:, perhaps with parameters, as in
// memory:?max_keys=N&file=PATH&every=1m, a Redis or a PostgreSQL. What an error
// says holds no password.
func Parse(raw string) (Store, error) {
	s, err := parse(raw)
	if err != nil {
		return Store{}, err
	}
	scheme, _, _ := strings.Cut(raw, ":")
	s.Scheme, s.Shown = strings.ToLower(scheme), raw
	if url, _ := s.Remote(); url != "" {
		s.Shown = hideSecrets(raw)
	}
	return s, nil
}

func parse(raw string) (Store, error) {
	switch {
	case isRedis(raw):
		_, _, err := redisstore.ParseURL(raw)
		return judged(Store{Redis: raw}, err, "redisstore")
	case IsPostgres(raw):
		_, _, err := pgstore.ParseURL(raw)
		return judged(Store{Postgres: raw}, err, "pgstore")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return Store{}, errors.New("store: not a URL: write memory: or memory:?max_keys=N, redis://localhost:6379 or postgres://localhost:5432/database")
	case u.Scheme == "memory":
		return parseMemory(u)
	case u.Scheme == "":
		return Store{}, errors.New("store: unknown kind of store: write memory:, redis://HOST or postgres://HOST/DATABASE")
	}
	return Store{}, fmt.Errorf("store: %q: unknown kind of store: write memory:, redis://HOST or postgres://HOST/DATABASE", u.Scheme)
}

// judged returns s, or what a module of ours has against its URL.
func judged(s Store, err error, module string) (Store, error) {
	if err != nil {
		return Store{}, fmt.Errorf("store: %s", strings.TrimPrefix(err.Error(), module+": url: "))
	}
	return s, nil
}

// IsPostgres reports whether raw is meant to be the URL of a PostgreSQL.
func IsPostgres(raw string) bool {
	kind, _, found := strings.Cut(raw, ":")
	return found && (kind == "postgres" || kind == "postgresql")
}

// isRedis reports whether raw is meant to be the URL of a Redis.
func isRedis(raw string) bool {
	kind, _, found := strings.Cut(raw, ":")
	return found && (kind == "redis" || kind == "rediss" || strings.HasPrefix(kind, "redis+") || strings.HasPrefix(kind, "rediss+"))
}

// parseMemory reads memory: and its parameters.
func parseMemory(u *url.URL) (Store, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Host != "" || u.Path != "" || u.Opaque != "" || u.Fragment != "" {
		return Store{}, errors.New("store: memory: may be followed by " + known + ", joined by &, and nothing else")
	}
	s := Store{Every: DefaultEvery}
	for name, values := range query {
		var err error
		switch {
		case len(values) != 1:
			err = fmt.Errorf("%s: must be there once", name)
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
			return Store{}, fmt.Errorf("store: %w", err)
		}
	}
	switch {
	case s.File != "":
		return s, nil
	case query.Has("every"):
		return Store{}, errors.New("store: every: there is no file=PATH to save to")
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

// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
)

// openStore opens the store that a URL names.
func openStore(raw string) (mete.Store, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("store: not a URL: write memory: or memory:?max_keys=N")
	}
	switch u.Scheme {
	case "memory":
		return openMemory(u)
	case "redis", "rediss", "redis+sentinel", "redis+cluster", "postgres", "postgresql":
		return nil, fmt.Errorf("store: %s: is not supported yet: only memory: is", u.Scheme)
	}
	return nil, fmt.Errorf("store: %q: unknown kind of store: only memory: is supported yet", u.Redacted())
}

// openMemory opens memory:, whose one parameter is max_keys.
func openMemory(u *url.URL) (mete.Store, error) {
	if u.Host != "" || u.Path != "" || u.Opaque != "" || u.Fragment != "" {
		return nil, fmt.Errorf("store: %q: memory: may be followed by ?max_keys=N and nothing else", u.Redacted())
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("store: %q: %w", u.Redacted(), err)
	}
	var c memstore.Config
	for name, values := range query {
		n, err := strconv.Atoi(values[0])
		if name != "max_keys" || len(values) != 1 {
			return nil, fmt.Errorf("store: %q: unknown parameter %q: only max_keys is known, once", u.Redacted(), name)
		}
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("store: max_keys: %q: must be a whole number above 0", values[0])
		}
		c.MaxKeys = n
	}
	store, err := memstore.New(c)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return store, nil
}

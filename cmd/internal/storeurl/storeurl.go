// SPDX-License-Identifier: Apache-2.0

// Package storeurl reads the URLs by which all commands name the store.
package storeurl

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/metehq/mete/memstore"
)

// Parse returns the configuration of the memory store that raw names: memory: or
// memory:?max_keys=N. Other stores are not supported yet. What an error says
// holds no password.
func Parse(raw string) (memstore.Config, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return memstore.Config{}, errors.New("store: not a URL: write memory: or memory:?max_keys=N")
	}
	switch u.Scheme {
	case "memory":
		return parseMemory(u)
	case "redis", "rediss", "redis+sentinel", "redis+cluster", "postgres", "postgresql":
		return memstore.Config{}, fmt.Errorf("store: %s: is not supported yet: only memory: is", u.Scheme)
	}
	return memstore.Config{}, fmt.Errorf("store: %q: unknown kind of store: only memory: is supported yet", u.Scheme)
}

// parseMemory reads memory:, whose one parameter is max_keys.
func parseMemory(u *url.URL) (memstore.Config, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Host != "" || u.Path != "" || u.Opaque != "" || u.Fragment != "" {
		return memstore.Config{}, errors.New("store: memory: may be followed by ?max_keys=N and nothing else")
	}
	var c memstore.Config
	for name, values := range query {
		if name != "max_keys" || len(values) != 1 {
			return memstore.Config{}, fmt.Errorf("store: memory: unknown parameter %q: only max_keys is known, once", name)
		}
		n, err := strconv.Atoi(values[0])
		if err != nil || n <= 0 {
			return memstore.Config{}, fmt.Errorf("store: max_keys: %q: must be a whole number above 0", values[0])
		}
		c.MaxKeys = n
	}
	return c, nil
}

// SPDX-License-Identifier: Apache-2.0

package storeurl

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Under returns raw with the paths of its files, where they are relative, counted
// from dir. A URL that is not right is returned as it is.
func Under(dir, raw string) string {
	if isRedis(raw) {
		return rewrite(raw, []string{"ca", "cert", "key"}, func(path string) string { return under(dir, path) })
	}
	if s, err := Parse(raw); err != nil || s.File == "" {
		return raw
	}
	return rewrite(raw, []string{"file"}, func(path string) string { return under(dir, path) })
}

func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Shown returns raw without users and passwords.
func Shown(raw string) string {
	if !isRedis(raw) {
		if u, err := url.Parse(raw); err == nil {
			return u.Redacted()
		}
		return "?"
	}
	shown := rewrite(raw, []string{"sentinel_username", "sentinel_password"}, func(string) string { return "xxxxx" })
	kind, rest, _ := strings.Cut(shown, "://")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		return kind + "://" + rest[strings.LastIndex(rest[:end], "@")+1:]
	}
	return kind + "://" + rest[strings.LastIndex(rest, "@")+1:]
}

// rewrite changes the values of some parameters, and nothing else.
func rewrite(raw string, names []string, change func(string) string) string {
	before, query, found := strings.Cut(raw, "?")
	if !found {
		return raw
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, escaped, _ := strings.Cut(part, "=")
		value, err := url.QueryUnescape(escaped)
		if err != nil || value == "" || !slices.Contains(names, name) {
			continue
		}
		if changed := change(value); changed != value {
			parts[i] = name + "=" + strings.ReplaceAll(url.QueryEscape(changed), "%2F", "/")
		}
	}
	return before + "?" + strings.Join(parts, "&")
}

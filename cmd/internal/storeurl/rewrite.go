// SPDX-License-Identifier: Apache-2.0

package storeurl

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Parameters that name files, and those that nobody else should see.
var (
	redisFiles    = []string{"ca", "cert", "key"}
	postgresFiles = []string{"sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"}
	secrets       = []string{"sentinel_username", "sentinel_password", "user", "password", "sslpassword"}
)

// under returns raw with its relative paths made relative to dir. An invalid URL stays
// as it is.
func under(dir, raw string) string {
	absolute := func(name, path string) string {
		if filepath.IsAbs(path) || name == "sslrootcert" && path == "system" { // whom the system trusts
			return path
		}
		return filepath.Join(dir, path)
	}
	switch {
	case dir == "":
		return raw
	case isRedis(raw):
		return rewrite(raw, redisFiles, absolute)
	case IsPostgres(raw):
		return rewrite(raw, postgresFiles, absolute)
	}
	if s, err := parse(raw); err != nil || s.File == "" {
		return raw
	}
	return rewrite(raw, []string{"file"}, absolute)
}

// Shown returns raw without users and passwords. Of an invalid URL it returns nothing,
// because a password can be anywhere in it.
func Shown(raw string) string {
	u, err := parse(raw)
	if err != nil {
		return "?"
	}
	return u.shown
}

// hideSecrets returns the URL of a Redis or PostgreSQL without users and passwords.
func hideSecrets(raw string) string {
	shown := rewrite(raw, secrets, func(string, string) string { return "xxxxx" })
	kind, rest, _ := strings.Cut(shown, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	return kind + "://" + rest[strings.LastIndex(rest[:end], "@")+1:]
}

// rewrite changes the values of some parameters, and nothing else.
func rewrite(raw string, names []string, change func(name, value string) string) string {
	before, query, found := strings.Cut(raw, "?")
	if !found {
		return raw
	}
	unescape := url.QueryUnescape
	if IsPostgres(raw) {
		unescape = url.PathUnescape // a plus is no space there
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		escapedName, escaped, _ := strings.Cut(part, "=")
		name, nameErr := unescape(escapedName)
		value, err := unescape(escaped)
		if nameErr != nil || err != nil || value == "" || !slices.Contains(names, name) {
			continue
		}
		if changed := change(name, value); changed != value {
			parts[i] = name + "=" + strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(changed))
		}
	}
	return before + "?" + strings.Join(parts, "&")
}

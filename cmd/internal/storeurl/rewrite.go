// SPDX-License-Identifier: Apache-2.0

package storeurl

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Parameters that name files, and parameters that contain secrets.
var (
	redisFiles    = []string{"ca", "cert", "key"}
	postgresFiles = []string{"sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"}
	secrets       = []string{"sentinel_username", "sentinel_password", "user", "password", "sslpassword"}
)

// under returns raw with its relative paths resolved against dir. It returns an invalid URL unchanged.
func under(dir, raw string) string {
	absolute := func(name, path string) string {
		if filepath.IsAbs(path) || name == "sslrootcert" && path == "system" { // the system roots
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

// Shown returns raw without users and passwords. It returns "" for an invalid URL, because a password can be
// anywhere in it.
func Shown(raw string) string {
	u, err := parse(raw)
	if err != nil {
		return "?"
	}
	return u.shown
}

func hideSecrets(raw string) string {
	shown := rewrite(raw, secrets, func(string, string) string { return "xxxxx" })
	kind, rest, _ := strings.Cut(shown, "://")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	return kind + "://" + rest[strings.LastIndex(rest[:end], "@")+1:]
}

// rewrite changes the values of the named parameters and keeps the rest of raw.
func rewrite(raw string, names []string, change func(name, value string) string) string {
	before, query, found := strings.Cut(raw, "?")
	if !found {
		return raw
	}
	unescape := url.QueryUnescape
	if IsPostgres(raw) {
		unescape = url.PathUnescape // plus is not a space here
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

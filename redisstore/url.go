// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	formServer = iota
	formSocket
	formSentinels
	formCluster
)

type scheme struct {
	form int
	tls  bool
	port string
}

var schemes = map[string]scheme{
	"redis":           {formServer, false, "6379"},
	"rediss":          {formServer, true, "6379"},
	"redis+unix":      {formSocket, false, ""},
	"redis+sentinel":  {formSentinels, false, "26379"},
	"rediss+sentinel": {formSentinels, true, "26379"},
	"redis+cluster":   {formCluster, false, "6379"},
	"rediss+cluster":  {formCluster, true, "6379"},
}

// DefaultPrefix begins all keys if a URL has no prefix parameter, because a Redis often serves several programs.
const DefaultPrefix = "mete:"

// Client settings that differ from the defaults of rueidis. Callers wait for less than a second, and a call that
// Redis may have run is never sent again.
const (
	dialTimeout  = time.Second
	writeTimeout = 2 * time.Second // for silent connections
	refresh      = 5 * time.Second // interval between topology refreshes
	fourConns    = 2               // log2 of the number; fastest from 16 callers on
)

type target struct {
	client rueidis.ClientOption
	config Config
}

// ParseURL reads a URL and returns the settings for [rueidis.NewClient] and [New]. These forms are valid:
//
//	redis://[user:password@]host[:6379][/db]              one server
//	redis+unix://[user:password@]/path[?db=N]             one server, by a socket
//	redis+sentinel://[…@]host[:26379],…/master[/db]       a master that these sentinels know
//	redis+cluster://[…@]host[:6379],…                     a cluster, by some of its nodes
//
// The scheme rediss instead of redis selects TLS. Parameters follow after ?, joined by &:
//
//	prefix=mete:, timeout=TIME, lease_share=0.1           see [Config]
//	ca=FILE, cert=FILE, key=FILE, server_name=NAME        TLS: trusted CA, client certificate, server name
//	sentinel_username=NAME, sentinel_password=TEXT        the user on the sentinels
//
// Other parameters are errors. The user's name and password, and the parameters, are percent-encoded. Errors
// contain no password. A server's certificate is always verified.
func ParseURL(raw string) (rueidis.ClientOption, Config, error) {
	t, err := parseURL(raw)
	if err != nil {
		return rueidis.ClientOption{}, Config{}, fmt.Errorf("redisstore: url: %w", err)
	}
	return t.client, t.config, nil
}

func parseURL(raw string) (t target, err error) {
	name, rest, ok := strings.Cut(raw, "://")
	s, known := schemes[name]
	if !ok || !known {
		return t, errors.New("must begin with redis://, redis+unix://, redis+sentinel:// or redis+cluster://, or the same schemes with rediss for TLS")
	}
	if strings.ContainsAny(rest, "# \t\r\n") {
		return t, errors.New("must not contain # or spaces: write %23 and %20")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		path = "/" + path
	}
	t.client = rueidis.ClientOption{
		ClientName:        "mete",
		ClientSetInfo:     rueidis.DisableClientSetInfo, // old servers and restricted users reject it
		Dialer:            net.Dialer{Timeout: dialTimeout},
		ConnWriteTimeout:  writeTimeout,
		PipelineMultiplex: fourConns,
		DisableCache:      true,
		DisableRetry:      true,
	}
	if s.tls {
		t.client.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if authority, err = t.parseUser(authority); err != nil {
		return t, err
	}
	if err := t.parseAddress(s, authority, path); err != nil {
		return t, err
	}
	// Lanes batch the takes before they reach the client. One connection per call in flight is then faster than a
	// shared one. In a cluster it is not, because calls of many slots are in flight.
	t.client.DisableAutoPipelining = s.form != formCluster
	return t, t.parseQuery(s, query)
}

// parseUser reads the user before the hosts, and returns the hosts.
func (t *target) parseUser(authority string) (hosts string, err error) {
	at := strings.LastIndex(authority, "@")
	if at < 0 {
		return authority, nil
	}
	name, password, _ := strings.Cut(authority[:at], ":")
	if t.client.Username, err = url.PathUnescape(name); err == nil {
		t.client.Password, err = url.PathUnescape(password)
	}
	switch {
	case err != nil || strings.ContainsAny(authority[:at], "@"):
		return "", errors.New("the user and the password must be percent-encoded: %25 for %, %40 for @, %2F for /")
	case t.client.Password == "":
		return "", errors.New("the password is missing: write user:password@, or :password@ for the default user")
	}
	return authority[at+1:], nil
}

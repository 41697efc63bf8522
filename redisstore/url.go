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

// Forms of URLs, by their schemes.
const (
	formServer = iota
	formSocket
	formSentinels
	formCluster
)

// A scheme is what stands before :// says.
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

// DefaultPrefix is what keys begin with where a URL does not say: a Redis is
// rarely there for one thing only.
const DefaultPrefix = "mete:"

// What a client of a limiter needs otherwise than rueidis has it. A caller waits
// for less than a second, and what Redis may have done is never sent again.
const (
	dialTimeout  = time.Second
	writeTimeout = 2 * time.Second // for a connection that is silent; takes end after [Config.Timeout]
	refresh      = 5 * time.Second // between two looks at sentinels or the cluster
	fourConns    = 2               // as a power of two; faster than one or two from 16 callers on
)

// target is what a URL says.
type target struct {
	client rueidis.ClientOption
	config Config
}

// ParseURL reads a URL of one of these forms, and returns settings for
// [rueidis.NewClient] and for [New].
//
//	redis://[user:password@]host[:6379][/db]              one server
//	redis+unix://[user:password@]/path[?db=N]             one server, by a socket
//	redis+sentinel://[…@]host[:26379],…/master[/db]       who is the master, sentinels know
//	redis+cluster://[…@]host[:6379],…                     a cluster, by some of its nodes
//
// rediss in place of redis is TLS. Behind ? and joined by & may follow
//
//	prefix=mete:, timeout=TIME, lease_share=0.1           see [Config]
//	ca=FILE, cert=FILE, key=FILE, server_name=NAME        TLS: whom to trust, who we are
//	sentinel_username=NAME, sentinel_password=TEXT        sentinels: the user there
//
// and nothing else. The user's name and password, and the parameters, are escaped
// as usual in URLs. No error contains a password. The certificate of a server is
// always looked at.
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
		return t, errors.New("must begin with redis://, redis+unix://, redis+sentinel:// or redis+cluster://, or the same with rediss for TLS")
	}
	if strings.ContainsAny(rest, "# \t\r\n") {
		return t, errors.New("must have no #, nor spaces: write %23 and %20")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		path = "/" + path
	}
	t.client = rueidis.ClientOption{
		ClientName:        "mete",
		ClientSetInfo:     rueidis.DisableClientSetInfo, // which old servers and users do not have
		Dialer:            net.Dialer{Timeout: dialTimeout},
		ConnWriteTimeout:  writeTimeout,
		PipelineMultiplex: fourConns,
		DisableCache:      true,
		DisableRetry:      true,
	}
	if s.tls {
		t.client.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if authority, err = t.user(authority); err != nil {
		return t, err
	}
	if err := t.place(s, authority, path); err != nil {
		return t, err
	}
	// Takes have been put together when they come to the client. A connection for
	// each call that is on the wire is then faster than to queue for a shared one;
	// in a cluster there are calls of many slots, and it is not.
	t.client.DisableAutoPipelining = s.form != formCluster
	return t, t.parameters(s, query)
}

// user reads what stands before the hosts, and returns the hosts.
func (t *target) user(authority string) (hosts string, err error) {
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
		return "", errors.New("the user and the password must be escaped: %25 for %, %40 for @, %2F for /")
	case t.client.Password == "":
		return "", errors.New("there is a user and no password: write user:password@, or :password@ for the default user")
	}
	return authority[at+1:], nil
}

// SPDX-License-Identifier: Apache-2.0

// Package config holds the settings of the server: their defaults, the strict
// YAML file they come from, and what is wrong with them.
package config

import (
	_ "embed"
	"net/netip"
	"time"

	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/topkeys"
)

// Sample is the annotated sample file. It has every setting, each with its
// default.
//
//go:embed mete.yaml
var Sample string

// A Config are the server's settings. [Default] returns the defaults; the zero
// Config is not valid. The yaml names are the keys of the file, and with dashes
// for underscores those of the flags of mete serve.
type Config struct {
	// Policy is the policy file, JSON or YAML, the URL of a PostgreSQL with rules
	// in it, as [pgstore.ParseURL] reads it. It may also be the https:// address of a signed
	// bundle: see package bundle. Empty is the built-in example.
	// In a configuration file, a relative path is relative to that file.
	Policy string `yaml:"policy"`

	// PolicyDatabase is the database that Policy names. [Load] sets it; nil: Policy is a
	// file.
	PolicyDatabase *storeurl.URL `yaml:"-"`

	// PolicyKeys are PEM files with Ed25519 public keys. If there are any, a policy
	// file is in force only with a signature by one of them beside it, in a file of its
	// name and .sig: see [policysign]. In a configuration file, relative paths are
	// relative to that file.
	PolicyKeys []string `yaml:"policy_keys"`

	// PolicyCA is a PEM file with the authorities of the server at an https:// Policy. Empty:
	// those of the system. In a configuration file, it is relative to that file.
	PolicyCA string `yaml:"policy_ca"`

	// StateDirectory is a directory for what the server keeps over restarts, readable by its
	// user alone: the last good policy of an https:// Policy. In a configuration file, it is
	// relative to that file.
	StateDirectory string `yaml:"state_directory"`

	// Store is the URL of the store that keeps the buckets. "memory:" keeps
	// them in the process; memory:?max_keys=N bounds their number. With
	// memory:?file=PATH they are saved when the server ends and every minute, or
	// as often as every=TIME says, and restored when it starts. The URLs of Redis are
	// those of [redisstore.ParseURL], the URLs of PostgreSQL those of
	// [pgstore.ParseURL]. In a configuration file, a relative path is relative to
	// that file.
	Store *storeurl.URL `yaml:"store"`

	// DenialCache answers from memory what a store elsewhere has just denied, until
	// the tokens are there and for a second at most. A store in memory needs none.
	DenialCache bool `yaml:"denial_cache"`

	// Listen is the main address, host:port. Port 0 is any free one. Where it answers the
	// API on a loopback address, Host must be localhost or an address.
	Listen string `yaml:"listen"`

	// AdminListen is the address of the admin API, which can change buckets by
	// hand. Where others than this machine can reach it, AdminTokens are required.
	AdminListen string `yaml:"admin_listen"`

	// AdminTokens are who may use the admin API, at most 100. If there are none,
	// the server makes one each start, and writes it where the commands of the same
	// user find it; who asks from the same machine without it may look, and change
	// nothing.
	AdminTokens []AdminToken `yaml:"admin_tokens"`

	// PublicMetrics serves /metrics without a token where there are AdminTokens.
	PublicMetrics bool `yaml:"public_metrics"`

	// TLS and AdminTLS make the two addresses speak TLS, 1.2 at least.
	TLS      TLS `yaml:"tls"`
	AdminTLS TLS `yaml:"admin_tls"`

	// MaxConnections bounds the open connections of the main address: beyond it, new
	// ones wait to be accepted. MaxInFlight bounds the requests that are being answered: one more is
	// answered with 503. An upgraded connection, such as a WebSocket, is one of both for
	// as long as it is open. The admin address has bounds of its own.
	MaxConnections int `yaml:"max_connections"`
	MaxInFlight    int `yaml:"max_in_flight"`

	// MaxWait is the longest max_wait of a request to the API, between 1ms and 24h. One
	// take with a max_wait can lock its buckets for that long.
	MaxWait time.Duration `yaml:"max_wait"`

	// Upstream is the http, https or h2c URL that allowed requests are passed on
	// to. Neither this nor Upstreams: no gateway, the main address answers the API.
	Upstream string `yaml:"upstream"`

	// Upstreams are where allowed requests are passed on to, and Routes say which of
	// them go where. Where there is one upstream and no route, all go there.
	Upstreams []Upstream `yaml:"upstreams"`
	Routes    []Route    `yaml:"routes"`

	// Upgrades are the protocols that connections through the gateway may be upgraded
	// to. One that carries requests, such as h2c, would carry them past every limit.
	Upgrades []string `yaml:"upgrades"`

	// UnderscoresInHeaders is drop, pass or refuse: what becomes of header fields on
	// their way to the upstreams whose names have "_", or any other character but
	// letters, digits and "-". Many programs read X_Api_Key as X-Api-Key, and rules do not:
	// pass refuses a request with one that looks like a name that an enforced rule reads.
	UnderscoresInHeaders string `yaml:"underscores_in_headers"`

	// H2C lets clients of the main address speak HTTP/2 without TLS, if they begin with
	// it.
	H2C bool `yaml:"h2c"`

	// MaxDelayed is how many requests through the gateway may wait for their turn, where
	// a rule has a queue or delays; those of one bucket have a quarter of the places.
	// One more is denied at once.
	MaxDelayed int `yaml:"max_delayed"`

	// Adaptive lowers all limits while the upstreams are slow or fail.
	Adaptive Adaptive `yaml:"adaptive"`

	// RewriteHost sends the upstream its own name in Host instead of the one the
	// client asked for.
	RewriteHost bool `yaml:"rewrite_host"`

	// MaxBodyBytes bounds the bodies that are passed on to the upstream; a larger
	// one is answered with 413. 0 is no bound: bodies are streams. (The API's own
	// bound is 64 KiB.)
	MaxBodyBytes int `yaml:"max_body_bytes"`

	// DecisionProfile is the gateway that asks /v1/decision: nginx, nginx-lua,
	// haproxy, caddy or traefik. It says which headers describe the request, and no
	// others are read. Empty: there is no /v1/decision. The gateway must be a trusted
	// proxy.
	DecisionProfile string `yaml:"decision_profile"`

	// TrustedProxies are the addresses whose ForwardedHeader is believed, each as
	// an address or a CIDR. The client is the rightmost hop that is not among
	// them.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`

	// TrustedHops is how many proxies every request has passed, 0 to 32, for
	// those whose addresses are not known. It takes the place of TrustedProxies;
	// no request may come around them.
	TrustedHops int `yaml:"trusted_hops"`

	// ForwardedHeader is the one header the trusted proxies write the client's
	// address to; others are ignored.
	ForwardedHeader string `yaml:"forwarded_header"`

	// TrustJWT reads claims from bearer tokens whose signature is NOT verified:
	// anybody can write any. Say true only where something in front of mete
	// verifies every token. False: jwt: attributes are absent.
	TrustJWT bool `yaml:"trust_jwt"`

	// JWT says how bearer tokens are verified, for what comes through the gateway
	// and for /v1/decision. It excludes TrustJWT.
	JWT JWT `yaml:"jwt"`

	// HashKey keys the hash that replaces secret and long components of bucket
	// keys. Servers that share a store must share it. Empty: a random one at
	// every start, or the one that is saved with the buckets.
	HashKey string `yaml:"hash_key"`

	// Violations is the URL of the PostgreSQL, as [pgstore.ParseURL] reads it, that
	// denied requests are recorded in: see package violations. Nil: they are not. In
	// a configuration file, a relative path in it is relative to that file.
	Violations *storeurl.URL `yaml:"violations"`

	// ViolationsRaw records keys, users and addresses as they are. False: keys and
	// users are hashed with HashKey, or with a key derived from a secret in that
	// database where it is empty, and addresses are cut to /24 and /48.
	ViolationsRaw bool `yaml:"violations_raw"`

	// ViolationsUser is the attribute that says who the user is.
	ViolationsUser string `yaml:"violations_user"`

	// ViolationsRetention is how long they are kept, by whole days: between an hour
	// and a hundred years.
	ViolationsRetention time.Duration `yaml:"violations_retention"`

	// TopKeys is how many keys each rule has a counter for, of those that are denied and
	// of those that are near a limit: see package topkeys. 0: none is counted.
	TopKeys int `yaml:"top_keys"`

	// RateLimitFields are the dialects of the header fields on answers: draft-11
	// (RateLimit, RateLimit-Policy), legacy (RateLimit-Limit, -Remaining,
	// -Reset), x (X-RateLimit-Limit, -Remaining, -Reset), or none alone.
	RateLimitFields []string `yaml:"rate_limit_fields"`

	// CORSOrigins are the origins whose scripts may read the gateway's denials, or "*" alone.
	CORSOrigins []string `yaml:"cors_origins"`

	// Jitter adds up to half of the wait, or a second, to the wait in the header fields of
	// denials, another part for each client, so that they do not all return at once.
	Jitter bool `yaml:"jitter"`

	// MaxHeaderBytes bounds the headers of a request, 1024 to 1048576. A request
	// that exceeds it by more than 4 KiB is answered with 431.
	MaxHeaderBytes int `yaml:"max_header_bytes"`

	// ReloadInterval is how often the policy file is looked at, at least 10ms.
	// 0: only SIGHUP reads it again.
	ReloadInterval time.Duration `yaml:"reload_interval"`

	// LogFormat is text or json. Logs go to standard error.
	LogFormat string `yaml:"log_format"`

	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"log_level"`

	// DenialLog says how denied requests are logged, at level info.
	DenialLog DenialLog `yaml:"denial_log"`

	// DenialWebhook is where denials are posted.
	DenialWebhook DenialWebhook `yaml:"denial_webhook"`

	// Telemetry says what a collector of OpenTelemetry is told.
	Telemetry Telemetry `yaml:"telemetry"`

	// Timeouts bound every wait of the server.
	Timeouts Timeouts `yaml:"timeouts"`
}

// JWT are the settings of package jwtclaims.
type JWT struct {
	// Keys is the JSON Web Key Set that tokens are verified with: a file, or an http
	// or https URL. Empty: tokens are not verified. In a configuration file, a
	// relative path is relative to that file.
	Keys string `yaml:"keys"`

	// Algorithms are the only ones that tokens may be signed by. HS256 and its kind,
	// whose secrets are then in Keys, must be named; none is never accepted.
	Algorithms []string `yaml:"algorithms"`

	// Issuer is what iss must be. Empty: anything.
	Issuer string `yaml:"issuer"`

	// Audience is what aud must name one of. Empty: anything.
	Audience []string `yaml:"audience"`

	// Leeway is how far the issuer's clock may be off, at most 10 minutes.
	Leeway time.Duration `yaml:"leeway"`
}

// Timeouts bound the server's waits. Each must be above 0 where not said
// otherwise.
type Timeouts struct {
	// ReadHeader is for reading a request's headers.
	ReadHeader time.Duration `yaml:"read_header"`

	// APIRequest is for reading a request to the API and for answering it.
	APIRequest time.Duration `yaml:"api_request"`

	// Idle is how long a connection is kept open between two requests.
	Idle time.Duration `yaml:"idle"`

	// UpstreamConnect is for connecting to the upstream, and then again for the
	// TLS handshake.
	UpstreamConnect time.Duration `yaml:"upstream_connect"`

	// UpstreamHeader is for the upstream's answer to begin.
	UpstreamHeader time.Duration `yaml:"upstream_header"`

	// UpstreamBody is how long the body of an answer may then stand still. 0: as long
	// as it likes; streams are passed on as they come.
	UpstreamBody time.Duration `yaml:"upstream_body"`

	// ClientBody is how long a client may let a body stand still: its own, until the
	// answer begins, or the one that it is sent. 0: as long as it likes.
	ClientBody time.Duration `yaml:"client_body"`

	// Upgraded is how long nothing may go through an upgraded connection, such as a
	// WebSocket, in either direction. 0: as long as it likes.
	Upgraded time.Duration `yaml:"upgraded"`

	// Notice is how long the server goes on taking connections after it was
	// told to end and /readyz has turned 503, so that load balancers can take
	// it out. May be 0.
	Notice time.Duration `yaml:"notice"`

	// Drain is how long requests in flight, and upgraded connections, then have to
	// finish.
	Drain time.Duration `yaml:"drain"`
}

// PolicyName returns the policy file, or the URL of the database or bundle without secrets.
func (c *Config) PolicyName() string {
	if c.PolicyDatabase != nil {
		return c.PolicyDatabase.String()
	}
	if bundle.IsURL(c.Policy) {
		return bundle.ShownSetting(c.Policy)
	}
	return c.Policy
}

// Default returns the settings of a server that was told nothing.
func Default() Config {
	return Config{
		Store:           storeurl.MustParse("memory:"),
		Listen:          "127.0.0.1:8080",
		AdminListen:     "127.0.0.1:8081",
		ForwardedHeader: "X-Forwarded-For",
		RateLimitFields: []string{"draft-11", "legacy"},
		Jitter:          true,
		DenialCache:     true,
		Upgrades:        []string{"websocket"},
		MaxDelayed:      4096,
		Adaptive:        Adaptive{Tolerance: 1.5, Floor: 0.1, Interval: time.Second},
		MaxHeaderBytes:  16 << 10,
		MaxConnections:  10_000,
		MaxInFlight:     10_000,
		MaxWait:         httpapi.DefaultMaxWait,
		ReloadInterval:  time.Second,
		LogFormat:       "text",
		LogLevel:        "info",

		UnderscoresInHeaders: "drop",

		DenialLog:     DenialLog{Interval: time.Minute, MaxLines: 10},
		DenialWebhook: DenialWebhook{Batch: 100, Interval: 5 * time.Second, Queue: 10_000},
		Telemetry:     Telemetry{Sample: 0.01, Interval: time.Minute},

		JWT: JWT{Algorithms: []string{"RS256", "PS256", "ES256", "EdDSA"}, Leeway: 30 * time.Second},

		TopKeys: topkeys.DefaultCounters,

		ViolationsUser:      "jwt:sub",
		ViolationsRetention: 30 * 24 * time.Hour,

		Timeouts: Timeouts{
			ReadHeader:      5 * time.Second,
			APIRequest:      10 * time.Second,
			Idle:            2 * time.Minute,
			UpstreamConnect: 5 * time.Second,
			UpstreamHeader:  time.Minute,
			ClientBody:      time.Minute,
			Upgraded:        10 * time.Minute,
			Drain:           10 * time.Second,
		},
	}
}

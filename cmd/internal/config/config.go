// SPDX-License-Identifier: Apache-2.0

// Package config holds the settings of the server: their defaults, the strict
// YAML file they come from, and what is wrong with them.
package config

import (
	_ "embed"
	"net/netip"
	"time"
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
	// Policy is the policy file, JSON or YAML, or the URL of a PostgreSQL with rules
	// in it, as [pgstore.ParseURL] reads it. Empty is the built-in example.
	// In a configuration file, a relative path is relative to that file.
	Policy string `yaml:"policy"`

	// PolicyKeys are PEM files with Ed25519 public keys. If there are any, a policy
	// file is in force only with a signature by one of them beside it, in a file of its
	// name and .sig: see [policysign]. In a configuration file, relative paths are
	// relative to that file.
	PolicyKeys []string `yaml:"policy_keys"`

	// Store is the URL of the store that keeps the buckets. "memory:" keeps
	// them in the process; memory:?max_keys=N bounds their number. With
	// memory:?file=PATH they are saved when the server ends and every minute, or
	// as often as every=TIME says, and restored when it starts. The URLs of Redis are
	// those of [redisstore.ParseURL], the URLs of PostgreSQL those of
	// [pgstore.ParseURL]. In a configuration file, a relative path is relative to
	// that file.
	Store string `yaml:"store"`

	// DenialCache answers from memory what a store elsewhere has just denied, until
	// the tokens are there and for a second at most. A store in memory needs none.
	DenialCache bool `yaml:"denial_cache"`

	// Listen is the main address, host:port. Port 0 is any free one.
	Listen string `yaml:"listen"`

	// AdminListen is the address of the admin API, which can change buckets by
	// hand and asks for no password: keep it where only you can reach it.
	AdminListen string `yaml:"admin_listen"`

	// Upstream is the http or https URL that allowed requests are passed on
	// to. Empty: no gateway, the main address answers the API.
	Upstream string `yaml:"upstream"`

	// RewriteHost sends the upstream its own name in Host instead of the one the
	// client asked for.
	RewriteHost bool `yaml:"rewrite_host"`

	// MaxBodyBytes bounds the bodies that are passed on to the upstream; a larger
	// one is answered with 413. 0 is no bound: bodies are streams. (The API's own
	// bound is 64 KiB.)
	MaxBodyBytes int `yaml:"max_body_bytes"`

	// DecisionProfile is the gateway that asks /v1/decision: nginx, traefik or
	// caddy. It says which headers describe the request, and no others are
	// read. Empty: there is no /v1/decision. The gateway must be a trusted proxy.
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
	// denied requests are recorded in: see package violations. Empty: they are not. In
	// a configuration file, a relative path in it is relative to that file.
	Violations string `yaml:"violations"`

	// ViolationsRaw records keys, users and addresses as they are. False: keys and
	// users are hashed with HashKey, or with a key derived from a secret in that
	// database where it is empty, and addresses are cut to /24 and /48.
	ViolationsRaw bool `yaml:"violations_raw"`

	// ViolationsUser is the attribute that says who the user is.
	ViolationsUser string `yaml:"violations_user"`

	// ViolationsRetention is how long they are kept, by whole days: between an hour
	// and a hundred years.
	ViolationsRetention time.Duration `yaml:"violations_retention"`

	// RateLimitFields are the dialects of the header fields on answers: draft-11
	// (RateLimit, RateLimit-Policy), legacy (RateLimit-Limit, -Remaining,
	// -Reset), x (X-RateLimit-Limit, -Remaining, -Reset), or none alone.
	RateLimitFields []string `yaml:"rate_limit_fields"`

	// Jitter adds up to half of the wait, or a second, to Retry-After, another
	// part for each client, so that they do not all return at once.
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

	// UpstreamHeader is for the upstream's answer to begin. Its body may take
	// as long as it likes: streams are passed on as they come.
	UpstreamHeader time.Duration `yaml:"upstream_header"`

	// Notice is how long the server goes on taking connections after it was
	// told to end and /readyz has turned 503, so that load balancers can take
	// it out. May be 0.
	Notice time.Duration `yaml:"notice"`

	// Drain is how long requests in flight then have to finish.
	Drain time.Duration `yaml:"drain"`
}

// Default returns the settings of a server that was told nothing.
func Default() Config {
	return Config{
		Store:           "memory:",
		Listen:          "127.0.0.1:8080",
		AdminListen:     "127.0.0.1:8081",
		ForwardedHeader: "X-Forwarded-For",
		RateLimitFields: []string{"draft-11", "legacy"},
		Jitter:          true,
		DenialCache:     true,
		MaxHeaderBytes:  16 << 10,
		ReloadInterval:  time.Second,
		LogFormat:       "text",
		LogLevel:        "info",

		JWT: JWT{Algorithms: []string{"RS256", "PS256", "ES256", "EdDSA"}, Leeway: 30 * time.Second},

		ViolationsUser:      "jwt:sub",
		ViolationsRetention: 30 * 24 * time.Hour,

		Timeouts: Timeouts{
			ReadHeader:      5 * time.Second,
			APIRequest:      10 * time.Second,
			Idle:            2 * time.Minute,
			UpstreamConnect: 5 * time.Second,
			UpstreamHeader:  time.Minute,
			Drain:           10 * time.Second,
		},
	}
}

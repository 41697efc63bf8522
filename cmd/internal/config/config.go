// SPDX-License-Identifier: Apache-2.0

// Package config loads the settings of the server from a YAML file, the environment and flags. It reports all
// errors with their positions.
package config

import (
	_ "embed"
	"net/netip"
	"net/url"
	"time"

	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/topkeys"
)

// Sample is the annotated sample file with the default of every setting.
//
//go:embed mete.yaml
var Sample string

// A Config holds the server's settings. [Default] returns the defaults; the zero Config is not valid. [Sample]
// documents each setting under its yaml name. Flags of mete serve have the same names with dashes for underscores.
// Excerpts of the file omit values with the tag secret. Load makes relative paths in the file absolute.
type Config struct {
	Policy         string        `yaml:"policy" secret:"password"` // a file, a URL of PostgreSQL or an https:// address; empty: the example
	PolicyDatabase *storeurl.URL `yaml:"-"`                        // set by Load if Policy is a URL of PostgreSQL
	PolicyBundle   *url.URL      `yaml:"-"`                        // set by Load if Policy is an https:// address
	PolicyKeys     []string      `yaml:"policy_keys"`              // files
	PolicyCA       string        `yaml:"policy_ca"`                // a file
	StateDirectory string        `yaml:"state_directory"`

	Store       *storeurl.URL `yaml:"store" secret:"password"`
	DenialCache bool          `yaml:"denial_cache"`

	Listen        string       `yaml:"listen"`
	AdminListen   string       `yaml:"admin_listen"`
	AdminTokens   []AdminToken `yaml:"admin_tokens"` // none: the server makes one
	PublicMetrics bool         `yaml:"public_metrics"`
	TLS           TLS          `yaml:"tls"`
	AdminTLS      TLS          `yaml:"admin_tls"`

	GRPCListen         string `yaml:"grpc_listen"` // empty: no gRPC
	GRPCTLS            TLS    `yaml:"grpc_tls"`
	GRPCMaxConnections int    `yaml:"grpc_max_connections"`

	RESPListen         string `yaml:"resp_listen"` // empty: no RESP
	RESPTLS            TLS    `yaml:"resp_tls"`
	RESPMaxConnections int    `yaml:"resp_max_connections"`

	MaxConnections int           `yaml:"max_connections"`
	MaxInFlight    int           `yaml:"max_in_flight"`
	MaxWait        time.Duration `yaml:"max_wait"`

	// Upstream is the short form of one entry in Upstreams. Without an upstream, the server is not a gateway, and
	// the main address serves the API.
	Upstream  *url.URL   `yaml:"upstream" secret:"password"`
	Upstreams []Upstream `yaml:"upstreams"`
	Routes    []Route    `yaml:"routes"`

	Upgrades             []string `yaml:"upgrades"`
	UnderscoresInHeaders string   `yaml:"underscores_in_headers"` // drop, pass or refuse
	H2C                  bool     `yaml:"h2c"`
	MaxDelayed           int      `yaml:"max_delayed"`
	Adaptive             Adaptive `yaml:"adaptive"`
	RewriteHost          *bool    `yaml:"rewrite_host"`     // nil: for https servers with a name
	MaxBodyBytes         int      `yaml:"max_body_bytes"`   // 0: no bound
	DecisionProfile      string   `yaml:"decision_profile"` // one of [httpapi.Profiles]; empty: no /v1/decision

	TrustedProxies  []netip.Prefix `yaml:"trusted_proxies"`
	TrustedHops     int            `yaml:"trusted_hops"`
	ForwardedHeader string         `yaml:"forwarded_header"`
	TrustJWT        bool           `yaml:"trust_jwt"` // trust claims WITHOUT a check of the signature
	JWT             JWT            `yaml:"jwt"`
	GeoIP           GeoIP          `yaml:"geoip"`
	HashKey         string         `yaml:"hash_key" secret:"all"`

	Violations          *storeurl.URL `yaml:"violations" secret:"password"` // a PostgreSQL; nil: not recorded
	ViolationsRaw       bool          `yaml:"violations_raw"`
	ViolationsUser      string        `yaml:"violations_user"`
	ViolationsRetention time.Duration `yaml:"violations_retention"`

	TopKeys         int           `yaml:"top_keys"` // counters of each rule; 0: none
	RateLimitFields []string      `yaml:"rate_limit_fields"`
	CORSOrigins     []string      `yaml:"cors_origins"`
	Jitter          bool          `yaml:"jitter"`
	MaxHeaderBytes  int           `yaml:"max_header_bytes"`
	ReloadInterval  time.Duration `yaml:"reload_interval"` // 0: only on SIGHUP

	LogFormat     string        `yaml:"log_format"` // text or json
	LogLevel      string        `yaml:"log_level"`  // debug, info, warn or error
	DenialLog     DenialLog     `yaml:"denial_log"`
	DenialWebhook DenialWebhook `yaml:"denial_webhook"`
	Telemetry     Telemetry     `yaml:"telemetry"`
	Timeouts      Timeouts      `yaml:"timeouts"`
}

// JWT holds the settings of package jwtclaims.
type JWT struct {
	Keys       string        `yaml:"keys" secret:"password"` // a file, or an http or https URL; empty: tokens are not verified
	Algorithms []string      `yaml:"algorithms"`
	Issuer     string        `yaml:"issuer"`
	Audience   []string      `yaml:"audience"`
	Leeway     time.Duration `yaml:"leeway"`
}

// GeoIP names the files of package geoip. An empty path means no file.
type GeoIP struct {
	Country  string `yaml:"country"`
	ASN      string `yaml:"asn"`
	TorExits string `yaml:"tor_exits"`
}

// Timeouts bound the server's waits. 0 disables the timeouts of request bodies, response bodies and upgraded
// connections, and the wait for the notice.
type Timeouts struct {
	ReadHeader      time.Duration `yaml:"read_header"`
	APIRequest      time.Duration `yaml:"api_request"`
	Idle            time.Duration `yaml:"idle"`
	GRPCIdle        time.Duration `yaml:"grpc_idle"`
	RESPIdle        time.Duration `yaml:"resp_idle"`
	UpstreamConnect time.Duration `yaml:"upstream_connect"`
	UpstreamHeader  time.Duration `yaml:"upstream_header"`
	UpstreamBody    time.Duration `yaml:"upstream_body"`
	ClientBody      time.Duration `yaml:"client_body"`
	Upgraded        time.Duration `yaml:"upgraded"`
	Notice          time.Duration `yaml:"notice"`
	Drain           time.Duration `yaml:"drain"`
}

// PolicyName returns the policy file, or the URL of the database or bundle without secrets.
func (c *Config) PolicyName() string {
	switch {
	case c.PolicyDatabase != nil:
		return c.PolicyDatabase.String()
	case c.PolicyBundle != nil:
		return bundle.Shown(c.PolicyBundle)
	}
	return c.Policy
}

// Default returns the default settings.
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

		GRPCMaxConnections: 10_000,
		RESPMaxConnections: 10_000,

		MaxInFlight:    10_000,
		MaxWait:        httpapi.DefaultMaxWait,
		ReloadInterval: time.Second,
		LogFormat:      "text",
		LogLevel:       "info",

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
			GRPCIdle:        5 * time.Minute,
			UpstreamConnect: 5 * time.Second,
			UpstreamHeader:  time.Minute,
			ClientBody:      time.Minute,
			Upgraded:        10 * time.Minute,
			Drain:           10 * time.Second,
		},
	}
}

// Telemetry configures the export to an OpenTelemetry collector by OTLP over HTTP. The standard variables
// configure the rest: OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and OTEL_BSP_*.
type Telemetry struct {
	Endpoint *url.URL      `yaml:"endpoint" secret:"password"` // nil: nothing is exported
	Headers  []string      `yaml:"headers" secret:"all"`       // name=value
	Sample   float64       `yaml:"sample"`
	Interval time.Duration `yaml:"interval"` // 0: no metrics are exported
}

// DenialLog configures the log of denied requests.
type DenialLog struct {
	Interval time.Duration `yaml:"interval"`  // between two lines of one key; 0: no denial is logged
	MaxLines int           `yaml:"max_lines"` // in a second
	Raw      bool          `yaml:"raw"`       // keys and addresses as they are
}

// DenialWebhook configures an endpoint for denials. The server posts batches of lines of the denial log in JSON.
// DenialLog sets their interval and whether they show keys. See package webhook.
type DenialWebhook struct {
	URL      *url.URL      `yaml:"url" secret:"all"`     // https, or http at a loopback address; nil: no denial is posted
	Headers  []string      `yaml:"headers" secret:"all"` // name=value
	Secret   string        `yaml:"secret" secret:"all"`  // signs each request; empty: none is signed
	Batch    int           `yaml:"batch"`                // the most lines in one request
	Interval time.Duration `yaml:"interval"`             // the longest wait of a line for its batch
	Queue    int           `yaml:"queue"`                // the most lines that wait; the oldest are dropped
}

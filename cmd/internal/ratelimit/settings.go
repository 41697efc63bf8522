// SPDX-License-Identifier: Apache-2.0

package ratelimit

import "time"

// Settings hold the values of the environment variables. [ReadSettings] returns them.
type Settings struct {
	// Listeners
	GRPCHost, HTTPHost, DebugHost string
	GRPCPort, HTTPPort, DebugPort int
	GRPCSocket                    string // path of a Unix socket that replaces the gRPC address
	Profiles                      bool   // the debug address serves /debug/pprof/
	MaxConnectionAge              time.Duration
	MaxConnectionAgeGrace         time.Duration
	ServerTLS                     TLSFiles
	ClientName                    string // DNS name in client certificates; empty: any

	// Configuration
	ConfigType        string
	StartUnconfigured bool // open the ports before the first configuration
	NeedDomain        bool // unhealthy while no domain is configured
	MergeDomains      bool
	Root              string
	Subdirectory      string
	AppDirectory      string
	IgnoreHidden      bool
	Control           ControlPlane

	// Decisions
	Algorithm     string
	NearLimit     float64
	KeyPrefix     string
	AllOrNothing  bool // a request over a limit spends nothing
	ShadowMode    bool
	QuotaMode     bool
	SendMetadata  bool
	SendHeaders   bool
	LimitHeader   string
	RemainsHeader string
	ResetHeader   string

	// Store
	StoreURL    string
	Backend     string
	Redis       Redis
	WatchStore  bool          // unhealthy while the store does not answer
	MaxWait     time.Duration // for the store at the start; 0: no bound
	FirstWait   time.Duration // between attempts; it doubles
	LongestWait time.Duration

	// Observation
	LogLevel       string
	LogFormat      string
	Prometheus     bool
	MetricsAddr    string
	MetricsPath    string
	Milliseconds   bool // response times in milliseconds, under the same name
	Statsd         bool
	StatsdHost     string
	StatsdProtocol string
	StatsdPort     int
	FlushInterval  time.Duration
	DisableStats   bool
	Tracing        Tracing
}

// TLSFiles are the paths of PEM files.
type TLSFiles struct {
	Enabled              bool
	Cert, Key, Authority string
}

// ControlPlane has the settings of the xDS client.
type ControlPlane struct {
	NodeID        string
	NodeMetadata  string
	Addr          string
	TLS           TLSFiles
	ServerName    string // empty: the host of Addr
	Headers       map[string]string
	ConnectRetry  time.Duration // between attempts before the first response
	FirstBackoff  time.Duration // after a lost stream; it doubles
	MaxBackoff    time.Duration
	Jitter        bool
	MaxMessageLen int
}

// Redis has the settings of a Redis.
type Redis struct {
	Type         string
	SocketType   string
	URL          string
	Auth         string // PASSWORD or USER:PASSWORD
	SentinelAuth string
	TLS          TLSFiles
	AnyName      bool          // do not compare the host with the certificate
	Timeout      time.Duration // 0: the default of package redisstore
}

// Tracing has the settings of the exporter of spans.
type Tracing struct {
	Enabled                      bool
	Protocol                     string
	Service, Namespace, Instance string
	Sample                       float64
	Endpoint                     string
}

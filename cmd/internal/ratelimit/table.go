// SPDX-License-Identifier: Apache-2.0

package ratelimit

// A Row documents one environment variable.
type Row struct {
	Name    string
	Form    string
	Default string // of mete; empty: none
	About   string

	// Effect is set for a variable of envoyproxy/ratelimit that mete does not use. It is the text after the name in a
	// warning.
	Effect string

	read    func(string) error
	isQuiet bool // ignored without a warning
}

// tableOf returns all known variables in the order of the documentation. Reading a row sets a field of s.
func tableOf(s *Settings) []Row {
	return join(listenerRows(s), configRows(s), xdsRows(&s.Control), decisionRows(s), storeRows(s), observationRows(s), ignoredRows)
}

func join(groups ...[]Row) (all []Row) {
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// Table returns all known variables in the order of the documentation.
func Table() []Row { return tableOf(new(Settings)) }

func listenerRows(s *Settings) []Row {
	return []Row{
		text("GRPC_HOST", &s.GRPCHost, "0.0.0.0", "address of the rate limit service"),
		port("GRPC_PORT", &s.GRPCPort, "8081", "port of the rate limit service"),
		text("GRPC_UDS", &s.GRPCSocket, "", "path of a Unix socket that replaces `GRPC_HOST` and `GRPC_PORT`"),
		text("HOST", &s.HTTPHost, "0.0.0.0", "address of `/json` and `/healthcheck`"),
		port("PORT", &s.HTTPPort, "8080", "port of `/json` and `/healthcheck`"),
		text("DEBUG_HOST", &s.DebugHost, "127.0.0.1", "address of `/rlconfig` and `/stats`; the original: `0.0.0.0`"),
		port("DEBUG_PORT", &s.DebugPort, "6070", "port of `/rlconfig` and `/stats`"),
		boolean("METE_DEBUG_PPROF", &s.Profiles, "false", "serve `/debug/pprof/` on the debug port; the original always does"),
		duration("GRPC_MAX_CONNECTION_AGE", &s.MaxConnectionAge, "24h", "age at which clients must open a new connection"),
		duration("GRPC_MAX_CONNECTION_AGE_GRACE", &s.MaxConnectionAgeGrace, "1h", "time for calls on an old connection"),
		boolean("GRPC_SERVER_USE_TLS", &s.ServerTLS.Enabled, "false", "serve gRPC over TLS"),
		text("GRPC_SERVER_TLS_CERT", &s.ServerTLS.Cert, "", "file of the certificate; mete reloads it"),
		text("GRPC_SERVER_TLS_KEY", &s.ServerTLS.Key, "", "file of the private key"),
		text("GRPC_CLIENT_TLS_CACERT", &s.ServerTLS.Authority, "", "file of the CA; clients need a certificate of it"),
		text("GRPC_CLIENT_TLS_SAN", &s.ClientName, "", "DNS name that the client's certificate must have"),
	}
}

func configRows(s *Settings) []Row {
	return []Row{
		word("CONFIG_TYPE", &s.ConfigType, "FILE", "source of the configuration", "FILE", "GRPC_XDS_SOTW"),
		boolean("FORCE_START_WITHOUT_INITIAL_CONFIG", &s.StartUnconfigured, "false", "open the ports before the first configuration"),
		boolean("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", &s.NeedDomain, "false", "unhealthy while there is no domain"),
		boolean("MERGE_DOMAIN_CONFIG", &s.MergeDomains, "false", "several files may have the same domain"),
		text("RUNTIME_ROOT", &s.Root, "/srv/runtime_data/current", "first part of the directory with the files"),
		text("RUNTIME_SUBDIRECTORY", &s.Subdirectory, "", "second part of the directory"),
		text("RUNTIME_APPDIRECTORY", &s.AppDirectory, "config", "last part of the directory"),
		boolean("RUNTIME_IGNOREDOTFILES", &s.IgnoreHidden, "false", "ignore files and directories that begin with a dot"),
		silent("RUNTIME_WATCH_ROOT", "mete notices both changed files and replaced symbolic links"),
	}
}

func xdsRows(c *ControlPlane) []Row {
	return []Row{
		text("CONFIG_GRPC_XDS_NODE_ID", &c.NodeID, "default", "node ID for the control plane"),
		text("CONFIG_GRPC_XDS_NODE_METADATA", &c.NodeMetadata, "", "metadata of the node: `key=value,key=value`"),
		text("CONFIG_GRPC_XDS_SERVER_URL", &c.Addr, "localhost:18000", "`host:port` of the control plane"),
		duration("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", &c.ConnectRetry, "3s", "delay between attempts before the first configuration"),
		pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", &c.Headers, "metadata of each call: `key:value,key:value`"),
		boolean("CONFIG_GRPC_XDS_SERVER_USE_TLS", &c.TLS.Enabled, "false", "connect over TLS"),
		text("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", &c.TLS.Cert, "", "file of the client certificate; read for each connection"),
		text("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", &c.TLS.Key, "", "file of its private key"),
		text("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", &c.TLS.Authority, "", "file of the CA of the control plane; empty: the CAs of the system"),
		text("CONFIG_GRPC_XDS_SERVER_TLS_SAN", &c.ServerName, "", "name in the certificate of the control plane"),
		duration("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", &c.FirstBackoff, "10s", "first delay after a lost stream; it doubles"),
		duration("XDS_CLIENT_BACKOFF_MAX_INTERVAL", &c.MaxBackoff, "60s", "longest delay"),
		boolean("XDS_CLIENT_BACKOFF_JITTER", &c.Jitter, "true", "shorten each delay by a random part, at most half"),
		unused("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "delays double"),
		number("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", &c.MaxMessageLen, "16777216", 1<<10, 1<<30, "bound of one response"),
	}
}

func decisionRows(s *Settings) []Row {
	return []Row{
		word("METE_ALGORITHM", &s.Algorithm, "fixed_window", "algorithm of all limits", "fixed_window", "token_bucket"),
		fraction("NEAR_LIMIT_RATIO", &s.NearLimit, "0.8", "part of a limit from which a hit counts as near"),
		text("CACHE_KEY_PREFIX", &s.KeyPrefix, "", "prefix of all keys"),
		boolean("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", &s.AllOrNothing, "false", "a request that is over a limit spends nothing"),
		boolean("SHADOW_MODE", &s.ShadowMode, "false", "never answer OVER_LIMIT"),
		boolean("QUOTA_MODE", &s.QuotaMode, "false", "all limits have `quota_mode`"),
		boolean("RESPONSE_DYNAMIC_METADATA", &s.SendMetadata, "false", "send the descriptors as dynamic metadata"),
		boolean("LIMIT_RESPONSE_HEADERS_ENABLED", &s.SendHeaders, "false", "send response headers"),
		text("LIMIT_LIMIT_HEADER", &s.LimitHeader, "RateLimit-Limit", "header with the limit"),
		text("LIMIT_REMAINING_HEADER", &s.RemainsHeader, "RateLimit-Remaining", "header with the remaining hits"),
		text("LIMIT_RESET_HEADER", &s.ResetHeader, "RateLimit-Reset", "header with the seconds until the reset"),
		silent("LOCAL_CACHE_SIZE_IN_BYTES", "mete needs no cache of its own"),
		silent("EXPIRATION_JITTER_MAX_SECONDS", "keys expire when their buckets are full"),
	}
}

func storeRows(s *Settings) []Row {
	r := &s.Redis
	return []Row{
		text("METE_STORE", &s.StoreURL, "", "store in place of `REDIS_URL`: `memory`, `redis://…` or `postgres://…`"),
		word("BACKEND_TYPE", &s.Backend, "redis", "kind of the store; `memcache` is an error, because it cannot count exactly", "redis", "memcache"),
		word("REDIS_TYPE", &r.Type, "SINGLE", "kind of the Redis", "SINGLE", "SENTINEL", "CLUSTER"),
		word("REDIS_SOCKET_TYPE", &r.SocketType, "unix", "`unix` if `REDIS_URL` is a path", "unix", "tcp"),
		text("REDIS_URL", &r.URL, "", "`host:port`, a path, `master,sentinel:port,…` or the nodes of a cluster"),
		text("REDIS_AUTH", &r.Auth, "", "`password` or `user:password`"),
		text("REDIS_SENTINEL_AUTH", &r.SentinelAuth, "", "the same for the sentinels"),
		boolean("REDIS_TLS", &r.TLS.Enabled, "false", "connect over TLS"),
		text("REDIS_TLS_CLIENT_CERT", &r.TLS.Cert, "", "file of the client certificate"),
		text("REDIS_TLS_CLIENT_KEY", &r.TLS.Key, "", "file of its private key"),
		text("REDIS_TLS_CACERT", &r.TLS.Authority, "", "file of the CA of Redis; empty: the CAs of the system"),
		boolean("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", &r.AnyName, "false", "accept a certificate of the CA with another name"),
		duration("REDIS_TIMEOUT", &r.Timeout, "1s", "bound of one call; the original: `10s`"),
		boolean("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", &s.WatchStore, "false", "unhealthy while the store does not answer"),
		duration("REDIS_STARTUP_INITIAL_INTERVAL", &s.FirstWait, "1s", "first delay between attempts to connect at the start; it doubles"),
		duration("REDIS_STARTUP_MAX_INTERVAL", &s.LongestWait, "30s", "longest delay"),
		duration("REDIS_STARTUP_MAX_ELAPSED_TIME", &s.MaxWait, "0", "bound of all attempts; `0`: none"),
		silent("REDIS_POOL_SIZE", "mete batches calls over a few connections"),
		silent("REDIS_PIPELINE_WINDOW", "mete batches calls without a delay"),
		silent("REDIS_PIPELINE_LIMIT", "mete batches calls"),
		silent("REDIS_CLUSTER_PIPELINE_PARALLELISM", "mete sends the calls of all slots in parallel"),
		silent("REDIS_POOL_ON_EMPTY_BEHAVIOR", "mete has no pool"),
		silent("REDIS_POOL_ON_EMPTY_WAIT_DURATION", "mete has no pool"),
	}
}

func observationRows(s *Settings) []Row {
	t := &s.Tracing
	return []Row{
		word("LOG_LEVEL", &s.LogLevel, "info", "minimum level of the log; the original: `warn`", logLevels...),
		word("LOG_FORMAT", &s.LogFormat, "text", "format of the log", "text", "json"),
		boolean("USE_PROMETHEUS", &s.Prometheus, "false", "serve metrics for Prometheus"),
		text("PROMETHEUS_ADDR", &s.MetricsAddr, ":9090", "address of the metrics"),
		text("PROMETHEUS_PATH", &s.MetricsPath, "/metrics", "path of the metrics"),
		boolean("PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", &s.Milliseconds, "false", "response times in milliseconds, under the name with seconds"),
		boolean("USE_STATSD", &s.Statsd, "false", "send counters to a StatsD server; the original: `true`"),
		text("STATSD_HOST", &s.StatsdHost, "localhost", "host of the StatsD server"),
		port("STATSD_PORT", &s.StatsdPort, "8125", "its port"),
		word("STATSD_PROTOCOL", &s.StatsdProtocol, "tcp", "its protocol", "tcp", "udp"),
		duration("STATS_FLUSH_INTERVAL", &s.FlushInterval, "10s", "interval for StatsD"),
		boolean("DISABLE_STATS", &s.DisableStats, "false", "no metrics and no StatsD"),
		boolean("TRACING_ENABLED", &t.Enabled, "false", "export spans by OTLP over HTTP to `OTEL_EXPORTER_OTLP_ENDPOINT`"),
		word("TRACING_EXPORTER_PROTOCOL", &t.Protocol, "http", "protocol of the exporter; `grpc` is an error", "http", "grpc"),
		text("TRACING_SERVICE_NAME", &t.Service, "RateLimit", "name of the service in spans"),
		text("TRACING_SERVICE_NAMESPACE", &t.Namespace, "", "namespace of the service in spans"),
		text("TRACING_SERVICE_INSTANCE_ID", &t.Instance, "", "instance of the service in spans"),
		fraction("TRACING_SAMPLING_RATE", &t.Sample, "1", "part of the calls that are traced"),
		text("OTEL_EXPORTER_OTLP_ENDPOINT", &t.Endpoint, "http://localhost:4318", "base URL of the collector"),
	}
}

var logLevels = []string{"trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"}

// onePerSecondRedis is the effect of the settings for a second Redis.
const onePerSecondRedis = "all limits use the store of `REDIS_URL`, also limits per second"

// ignoredRows are the remaining variables of envoyproxy/ratelimit.
var ignoredRows = []Row{
	silent("GRPC_SERVER_TLS_CA_CERT", "Envoy Gateway sets it, but the original does not read it either; see `GRPC_CLIENT_TLS_CACERT`"),
	silent("PROMETHEUS_MAPPER_YAML", "the metrics have the names of the original's own mapping"),
	unused("USE_DOG_STATSD", "mete sends no DogStatsD; use `USE_PROMETHEUS`"),
	unused("USE_DOG_STATSD_MOGRIFIERS", "mete sends no DogStatsD; use `USE_PROMETHEUS`"),
	unused("EXTRA_TAGS", "metrics have no extra tags; add them where Prometheus scrapes"),
	unused("REDIS_PERSECOND", onePerSecondRedis),
	unused("REDIS_PERSECOND_TYPE", onePerSecondRedis),
	unused("REDIS_PERSECOND_URL", onePerSecondRedis),
	unused("REDIS_PERSECOND_SOCKET_TYPE", onePerSecondRedis),
	unused("REDIS_PERSECOND_AUTH", onePerSecondRedis),
	unused("REDIS_PERSECOND_SENTINEL_AUTH", onePerSecondRedis),
	unused("REDIS_PERSECOND_TLS", onePerSecondRedis),
	unused("REDIS_PERSECOND_TIMEOUT", onePerSecondRedis),
	unused("REDIS_PERSECOND_POOL_SIZE", onePerSecondRedis),
	unused("REDIS_PERSECOND_PIPELINE_WINDOW", onePerSecondRedis),
	unused("REDIS_PERSECOND_PIPELINE_LIMIT", onePerSecondRedis),
	unused("REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", onePerSecondRedis),
	unused("REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", onePerSecondRedis),
	unused("REDIS_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION", onePerSecondRedis),
	unused("MEMCACHE_HOST_PORT", noMemcache),
	unused("MEMCACHE_MAX_IDLE_CONNS", noMemcache),
	unused("MEMCACHE_SRV", noMemcache),
	unused("MEMCACHE_SRV_REFRESH", noMemcache),
	unused("MEMCACHE_TLS", noMemcache),
	unused("MEMCACHE_TLS_CLIENT_CERT", noMemcache),
	unused("MEMCACHE_TLS_CLIENT_KEY", noMemcache),
	unused("MEMCACHE_TLS_CACERT", noMemcache),
	unused("MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", noMemcache),
}

const noMemcache = "mete has no store in memcache; set `REDIS_URL` or `METE_STORE`"

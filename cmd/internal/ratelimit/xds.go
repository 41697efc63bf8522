// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/smallfile"
	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/internal/follow"
)

const (
	// configType is the type URL of the configuration.
	configType = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

	// A control plane with the defaults of gRPC closes connections with pings every 5 minutes or less.
	controlPing        = 6 * time.Minute
	controlPingTimeout = 20 * time.Second

	// maxResources bounds the domains of one response.
	maxResources = 1 << 16

	// maxDetail bounds the text of a rejection for the control plane.
	maxDetail = 4 << 10
)

// An xdsSource follows the configuration of a control plane by xDS: the aggregated discovery service, state of the
// world. It rejects an invalid configuration, and the old one stays active.
type xdsSource struct {
	settings ControlPlane
	options  dropin.ConfigOptions
	target   *target
	log      *slog.Logger

	version   string // of the last accepted response of the stream
	responded bool   // the stream has received a response
	memory    follow.Memory
}

func newXDSSource(s *Settings, to *target, log *slog.Logger) *xdsSource {
	return &xdsSource{
		settings: s.Control,
		options:  dropin.ConfigOptions{MergeDomains: s.MergeDomains},
		target:   to,
		log:      log.With("control_plane", s.Control.Addr),
	}
}

// run follows the control plane until ctx ends. It opens a new stream after each failure.
func (x *xdsSource) run(ctx context.Context) {
	delay := time.Duration(0)
	for {
		err := x.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if x.memory.Note(x.responded, err) == follow.NewsFailed || x.responded {
			x.log.Warn("control plane lost, old configuration stays active", "err", err)
		}
		delay = x.nextDelay(delay)
		wait := delay
		if x.settings.Jitter {
			wait = delay/2 + rand.N(delay/2+1)
		}
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// nextDelay returns the delay before the next stream. It doubles while streams fail without a response.
func (x *xdsSource) nextDelay(last time.Duration) time.Duration {
	select {
	case <-x.target.first:
	default:
		return x.settings.ConnectRetry
	}
	if x.responded || last == 0 {
		return x.settings.FirstBackoff
	}
	return min(max(2*last, x.settings.FirstBackoff), x.settings.MaxBackoff)
}

// follow receives responses over one connection until it fails. It reads the certificates again.
func (x *xdsSource) follow(ctx context.Context) error {
	x.responded, x.version = false, ""
	conn, err := x.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, metadata.New(x.settings.Headers)))
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	// The first request has no version. A restarted control plane may give an old version to a new configuration, and
	// would not send it to a client that has this version.
	if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: x.node(), TypeUrl: configType}); err != nil {
		return receiveError(stream, err)
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		x.responded = true
		if err := stream.Send(x.answer(response)); err != nil {
			return receiveError(stream, err)
		}
	}
}

// receiveError returns the error of a stream that has failed in Send, which returns only io.EOF.
func receiveError(stream grpc.ClientStream, err error) error {
	if received := stream.RecvMsg(new(discoveryv3.DiscoveryResponse)); received != nil {
		return received
	}
	return err
}

// answer activates a response and returns its ACK, or returns a NACK with the reason.
func (x *xdsSource) answer(response *discoveryv3.DiscoveryResponse) *discoveryv3.DiscoveryRequest {
	reply := &discoveryv3.DiscoveryRequest{Node: x.node(), TypeUrl: configType, ResponseNonce: response.GetNonce()}
	config, err := x.read(response)
	if err != nil {
		x.target.countError()
		x.log.Error("configuration rejected, old configuration stays active", "version", response.GetVersionInfo(), "err", err)
		reply.VersionInfo = x.version
		detail := err.Error()
		if len(detail) > maxDetail {
			detail = strings.ToValidUTF8(detail[:maxDetail], "") + "…"
		}
		reply.ErrorDetail = &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: detail}
		return reply
	}
	x.target.set(config)
	x.version = response.GetVersionInfo()
	reply.VersionInfo = x.version
	x.log.Info("configuration loaded", "version", x.version, "domains", len(config.Domains()))
	return reply
}

func (x *xdsSource) read(response *discoveryv3.DiscoveryResponse) (*dropin.Config, error) {
	resources := response.GetResources()
	switch {
	case response.GetTypeUrl() != configType:
		return nil, fmt.Errorf("type URL %q: must be %s", shorten(response.GetTypeUrl()), configType)
	case len(resources) > maxResources:
		return nil, fmt.Errorf("%d resources: must be at most %d", len(resources), maxResources)
	}
	configs := make([]*rlsconf.RateLimitConfig, len(resources))
	for i, resource := range resources {
		configs[i] = new(rlsconf.RateLimitConfig)
		if err := unpack(resource, configs[i]); err != nil {
			return nil, fmt.Errorf("resource %d: %w", i+1, err)
		}
	}
	return dropin.FromProto(configs, x.options)
}

func unpack(resource *anypb.Any, to *rlsconf.RateLimitConfig) error {
	if resource.GetTypeUrl() == "type.googleapis.com/envoy.service.discovery.v3.Resource" {
		var wrapped discoveryv3.Resource
		if err := resource.UnmarshalTo(&wrapped); err != nil {
			return err
		}
		resource = wrapped.GetResource()
	}
	return resource.UnmarshalTo(to)
}

func (x *xdsSource) node() *corev3.Node {
	node := &corev3.Node{
		Id:                   x.settings.NodeID,
		UserAgentName:        "mete",
		UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: buildinfo.Read().Version},
		Metadata:             &structpb.Struct{Fields: map[string]*structpb.Value{}},
	}
	for pair := range strings.SplitSeq(x.settings.NodeMetadata, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			node.Metadata.Fields[key] = structpb.NewStringValue(value)
		}
	}
	return node
}

func (x *xdsSource) dial() (*grpc.ClientConn, error) {
	secure := insecure.NewCredentials()
	if x.settings.TLS.Enabled {
		config, err := x.settings.clientTLS()
		if err != nil {
			return nil, err
		}
		secure = credentials.NewTLS(config)
	}
	return grpc.NewClient(x.settings.Addr,
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(x.settings.MaxMessageLen)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: controlPing, Timeout: controlPingTimeout}),
	)
}

// clientTLS reads the files of the TLS settings.
func (c *ControlPlane) clientTLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.TLS.Authority != "" {
		pool, err := smallfile.Authorities(c.TLS.Authority)
		if err != nil {
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_SERVER_TLS_CACERT: %w", err)
		}
		config.RootCAs = pool
	}
	if c.TLS.Cert == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
	if err != nil {
		return nil, fmt.Errorf("CONFIG_GRPC_XDS_CLIENT_TLS_CERT, CONFIG_GRPC_XDS_CLIENT_TLS_KEY: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"os"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// readConfiguration reads YAML as Envoy does: by the field names of its API, and without unknown fields.
func readConfiguration(t *testing.T, text string, into proto.Message) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(data, into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if checked, ok := into.(interface{ ValidateAll() error }); !ok || checked.ValidateAll() != nil {
		t.Errorf("%v\n%s", checked.ValidateAll(), text)
	}
}

// The example is a configuration of Envoy's API with raw header fields. Envoy itself does not run here.
func TestExample_Authorization(t *testing.T) {
	text, err := os.ReadFile("../examples/envoy/ext_authz.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b bootstrapv3.Bootstrap
	readConfiguration(t, string(text), &b)
	var manager managerv3.HttpConnectionManager
	if err := b.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(&manager); err != nil {
		t.Fatal(err)
	}
	var filter authzv3.ExtAuthz
	if err := manager.GetHttpFilters()[0].GetTypedConfig().UnmarshalTo(&filter); err != nil {
		t.Fatal(err)
	}
	if err := filter.ValidateAll(); err != nil || !filter.GetEncodeRawHeaders() || !manager.GetUseRemoteAddress().GetValue() {
		t.Errorf("got %v (%v), want raw header fields and the remote address", &filter, err)
	}
}

// The filters in doc/envoy.md are part of Envoy's API, too.
func TestDocument_Authorization(t *testing.T) {
	text, err := os.ReadFile("../doc/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
		part, _, _ = strings.Cut(part, "```")
		if !strings.HasPrefix(part, "http_filters:") || !strings.Contains(part, "ext_authz.v3.ExtAuthz\n") {
			continue
		}
		found++
		var manager managerv3.HttpConnectionManager
		readConfiguration(t, "stat_prefix: http\nroute_config: {}\n"+part, &manager)
		var filter authzv3.ExtAuthz
		if err := manager.GetHttpFilters()[0].GetTypedConfig().UnmarshalTo(&filter); err != nil {
			t.Fatal(err)
		}
		if err := filter.ValidateAll(); err != nil {
			t.Error(err)
		}
		if service := filter.GetHttpService(); service != nil && service.GetPathPrefix() != "/v1/decision" {
			t.Errorf("got the path prefix %q", service.GetPathPrefix())
		}
	}
	if found != 2 {
		t.Errorf("got %d filters, want the one for gRPC and the one for HTTP", found)
	}
}

// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/metehq/mete/proof/meted"
)

const namespace = "shop"

// gatewayValues use the values that the defaults leave out.
const gatewayValues = `
image: {repository: registry.example.com/mete, tag: v9.9.9}
imagePullSecrets: [{name: registry}]
autoscaling: {enabled: true}
policy: {existingConfigMap: own-policy}
settings:
  upstream: http://app:80
  trusted_proxies: [10.0.0.0/8]
resources: {limits: {memory: 2Gi}, requests: {memory: 2Gi}}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
podAnnotations: {example.com/team: shop}
podLabels: {example.com/tier: edge}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: edge, operator: Exists}]
priorityClassName: high
`

// renderFiles renders the chart as helm install does, with its checks of the values.
func renderFiles(t *testing.T, release string, values map[string]any) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(example(t, "helm", "mete"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, top)
}

// renderChart decodes the objects of the chart strictly.
func renderChart(t *testing.T, release string, values map[string]any) objects {
	t.Helper()
	files, err := renderFiles(t, release, values)
	if err != nil {
		t.Fatal(err)
	}
	o := objects{configMaps: map[string]corev1.ConfigMap{}}
	for path, text := range files {
		if filepath.Ext(path) != ".yaml" {
			continue
		}
		for _, document := range releaseutil.SplitManifests(text) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, document)
			}
			if kind.Kind == "" {
				continue // only a comment
			}
			if err := o.add(kind.APIVersion+" "+kind.Kind, []byte(document)); err != nil {
				t.Errorf("%s: %v\n%s", path, err, document)
			}
		}
	}
	return o
}

// renderGateway renders the chart with gatewayValues, beside the ConfigMap that they name.
func renderGateway(t *testing.T) objects {
	t.Helper()
	o := renderChart(t, "edge", valuesOf(t, gatewayValues))
	o.configMaps["own-policy"] = corev1.ConfigMap{Data: map[string]string{"policy.yaml": string(read(t, "kubernetes", "base", "policy.yaml"))}}
	return o
}

func valuesOf(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestHelm_Lint(t *testing.T) {
	for _, values := range []string{"", gatewayValues} {
		for _, m := range lint.All(example(t, "helm", "mete"), valuesOf(t, values), namespace, true).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("helm lint: %v", m)
			}
		}
	}
}

func TestHelm_Values(t *testing.T) {
	o := renderGateway(t)
	c, pod := o.container(t), o.deployment.Spec.Template
	for what, ok := range map[string]bool{
		"name":           o.deployment.Name == "edge-mete",
		"image":          c.Image == "registry.example.com/mete:v9.9.9",
		"pull secret":    len(pod.Spec.ImagePullSecrets) == 1,
		"memory limit":   c.Resources.Limits.Memory().String() == "2Gi",
		"CPU request":    c.Resources.Requests.Cpu().String() == "250m",
		"annotation":     pod.Annotations["example.com/team"] == "shop",
		"label":          pod.Labels["example.com/tier"] == "edge",
		"node selector":  pod.Spec.NodeSelector["kubernetes.io/os"] == "linux",
		"toleration":     len(pod.Spec.Tolerations) == 1,
		"priority class": pod.Spec.PriorityClassName == "high",
		"upstream":       strings.Contains(o.file(t, "config", "mete.yaml"), "upstream: http://app:80"),
		"own config map": len(o.configMaps) == 2,
	} {
		if !ok {
			t.Errorf("the rendered objects lack: %s", what)
		}
	}

	m := o.monitor
	if m == nil || m.Labels["release"] != "prometheus" || len(m.Spec.Endpoints) != 1 {
		t.Fatalf("service monitor: %+v", m)
	}
	var selected []string
	for _, s := range o.services {
		if matches(m.Spec.Selector.MatchLabels, s.Labels) && s.Spec.Ports[0].Name == m.Spec.Endpoints[0].Port {
			selected = append(selected, s.Name)
		}
	}
	if len(selected) != 1 || selected[0] != "edge-mete-admin" {
		t.Errorf("the service monitor selects the services %q, want edge-mete-admin", selected)
	}
	if a := m.Spec.Endpoints[0].Authorization; a == nil || a.Credentials.Name != secretName || a.Credentials.Key != "metrics-token" {
		t.Errorf("authorization of the service monitor: %+v", a)
	}

	// Changed settings replace the pods, a changed policy does not.
	before := renderChart(t, "mete", nil)
	policy := renderChart(t, "mete", valuesOf(t, "policy: {inline: 'rules: []'}"))
	settings := renderChart(t, "mete", valuesOf(t, "settings: {upstream: 'http://app:80'}"))
	sum := func(o objects) string { return o.deployment.Spec.Template.Annotations["checksum/config"] }
	if sum(before) != sum(policy) || sum(before) == sum(settings) {
		t.Errorf("checksum/config: %s, with another policy %s, with other settings %s", sum(before), sum(policy), sum(settings))
	}
}

// matches reports whether labels have all of a selector.
func matches(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// TestHelm_Optional expects no object that the values disable.
func TestHelm_Optional(t *testing.T) {
	o := renderChart(t, "mete", valuesOf(t, "networkPolicy: {enabled: false}\npodDisruptionBudget: {enabled: false}"))
	if o.network.Name != "" || o.disruptions.Name != "" || o.monitor != nil || o.scaler != nil {
		t.Errorf("the chart renders a disabled object: %q, %q, %v, %v", o.network.Name, o.disruptions.Name, o.monitor, o.scaler)
	}
}

func TestHelm_TLS(t *testing.T) {
	o := renderChart(t, "mete", valuesOf(t, "settings: {tls: {cert: ../tls/tls.crt, key: ../tls/tls.key}, admin_tls: {cert: a, key: b}}\nserviceMonitor: {enabled: true}"))
	for _, p := range probes(o.container(t)) {
		if p.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("the probe of %s has the scheme %s", p.HTTPGet.Path, p.HTTPGet.Scheme)
		}
	}
	if s := o.monitor.Spec.Endpoints[0].Scheme; s == nil || s.String() != "https" {
		t.Errorf("the service monitor has the scheme %v", s)
	}
}

// TestHelm_Protocols expects the ports of gRPC and RESP in the settings, the pods, the service and the network policy.
func TestHelm_Protocols(t *testing.T) {
	for name, port := range map[string]int32{"grpc": 8082, "resp": 6380} {
		if o := renderChart(t, "mete", nil); strings.Contains(o.file(t, "config", "mete.yaml"), name+"_listen") || len(o.network.Spec.Ingress[0].Ports) != 1 {
			t.Errorf("the chart opens the port %s by default", name)
		}
		o := renderChart(t, "mete", valuesOf(t, name+": {enabled: true}"))
		if text, want := o.file(t, "config", "mete.yaml"), fmt.Sprintf("%s_listen: 0.0.0.0:%d", name, port); !strings.Contains(text, want) {
			t.Errorf("mete.yaml lacks %q:\n%s", want, text)
		}
		open := slices.ContainsFunc(o.container(t).Ports, func(p corev1.ContainerPort) bool { return p.Name == name && p.ContainerPort == port })
		served := slices.ContainsFunc(o.services, func(s corev1.Service) bool {
			return s.Name == "mete" && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.TargetPort.StrVal == name && p.Port == port })
		})
		allowed := slices.ContainsFunc(o.network.Spec.Ingress[0].Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.StrVal == name })
		if !open || !served || !allowed {
			t.Errorf("%s: container port %t, service %t, network policy %t; want all", name, open, served, allowed)
		}
	}
}

// TestHelm_BadValues expects an error that names the place of the value.
func TestHelm_BadValues(t *testing.T) {
	for values, want := range map[string]string{
		"replica: 3":                               "replica",
		"image: {name: mete}":                      "/image",
		"replicas: 0":                              "/replicas",
		"settings: {store: 'memory:'}":             "/settings/store",
		"settings: {admin_tokens: []}":             "/settings/admin_tokens",
		"settings: {grpc_listen: ':1'}":            "/settings/grpc_listen",
		"resp: {enabled: true, port: 80}":          "/resp/port",
		"policy: {inline: {rules: []}}":            "/policy/inline",
		"resources: {limits: {memory: 500M}}":      "/resources/limits/memory",
		"service: {type: Ingress}":                 "/service/type",
		"serviceMonitor: {interval: now}":          "/serviceMonitor/interval",
		"secret: {name: ''}":                       "/secret/name",
		"networkPolicy: {enabled: 'yes'}":          "/networkPolicy/enabled",
		"podDisruptionBudget: {minAvailable: 50%}": "/podDisruptionBudget",
	} {
		if _, err := renderFiles(t, "mete", valuesOf(t, values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values %s: error %v, want one with %q", values, err, want)
		}
	}
}

// TestHelm_Documented renders the chart with the flags of each documented command.
func TestHelm_Documented(t *testing.T) {
	flag := regexp.MustCompile(`--(set|set-file) (\S+)`)
	for _, doc := range []string{"doc/deploy.md", "examples/deploy/helm/mete/README.md"} {
		text, err := os.ReadFile(filepath.Join(meted.Root(t), doc))
		if err != nil {
			t.Fatal(err)
		}
		installs := 0
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
			if !strings.HasPrefix(line, "    helm install mete examples/deploy/helm/mete") {
				continue
			}
			installs++
			values := map[string]any{}
			for _, m := range flag.FindAllStringSubmatch(line, -1) {
				setting := m[2]
				if m[1] == "set-file" { // its text does not matter here
					name, _, _ := strings.Cut(setting, "=")
					setting = name + "=rules"
				}
				if err := strvals.ParseInto(setting, values); err != nil {
					t.Errorf("%s: %s: %v", doc, line, err)
				}
			}
			if _, err := renderFiles(t, "mete", values); err != nil {
				t.Errorf("%s: %s: %v", doc, line, err)
			}
		}
		if installs == 0 {
			t.Errorf("%s has no command that installs the chart", doc)
		}
	}
	notes, err := renderFiles(t, "mete", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := notes["mete/templates/NOTES.txt"]; !strings.Contains(got, "http://mete."+namespace+"/v1/take") || strings.Contains(got, "<no value>") {
		t.Errorf("NOTES.txt:\n%s", got)
	}
}

// TestHelm_Image expects the image that README.md names: scripts/release checks that one.
func TestHelm_Image(t *testing.T) {
	o := renderChart(t, "mete", nil)
	readme, err := os.ReadFile(filepath.Join(meted.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if image := o.container(t).Image; !strings.Contains(string(readme), " "+image+"\n") {
		t.Errorf("the chart runs the image %s, which README.md does not name", image)
	}
}

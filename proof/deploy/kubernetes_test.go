// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/metehq/mete/proof/meted"
)

var errUnknownKind = errors.New("of a kind that is not expected here")

// each runs a check of all manifests.
func each(t *testing.T, check func(*testing.T, objects)) {
	for name, objectsOf := range manifests {
		t.Run(name, func(t *testing.T) { check(t, objectsOf(t)) })
	}
}

// TestKubernetes_Strict checks that decoding rejects an unknown field.
func TestKubernetes_Strict(t *testing.T) {
	var o objects
	const text = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: a, port: [{containerPort: 1}]}]}}}\n"
	if err := o.add("apps/v1 Deployment", []byte(text)); err == nil || !strings.Contains(err.Error(), `unknown field "spec.template.spec.containers[0].port"`) && !strings.Contains(err.Error(), `unknown field "port"`) {
		t.Errorf("a deployment with port for ports: %v, want an error that names the field", err)
	}
}

func TestKubernetes_Selectors(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		pods := o.deployment.Spec.Template.Labels
		selectors := map[string]map[string]string{
			"deployment":        matched(o.deployment.Spec.Selector),
			"disruption budget": matched(o.disruptions.Spec.Selector),
			"network policy":    matched(&o.network.Spec.PodSelector),
		}
		for _, c := range o.deployment.Spec.Template.Spec.TopologySpreadConstraints {
			selectors["topology constraint"] = matched(c.LabelSelector)
		}
		for _, s := range o.services {
			selectors["service "+s.Name] = s.Spec.Selector
		}
		for who, selector := range selectors {
			if len(selector) == 0 {
				t.Errorf("the %s selects everything", who)
			}
			for name, value := range selector {
				if pods[name] != value {
					t.Errorf("the %s selects %s=%s, and the pods have %q", who, name, value, pods[name])
				}
			}
		}
		if s := o.scaler; s != nil && (s.Spec.ScaleTargetRef.Kind != "Deployment" || s.Spec.ScaleTargetRef.Name != o.deployment.Name) {
			t.Errorf("the autoscaler is for %+v", s.Spec.ScaleTargetRef)
		}
		if (o.scaler == nil) == (o.deployment.Spec.Replicas == nil) {
			t.Error("either the autoscaler or the deployment says how many replicas there are")
		}
		if o.deployment.Spec.Replicas != nil && *o.deployment.Spec.Replicas < 2 {
			t.Errorf("%d replicas: a restart of one leaves none", *o.deployment.Spec.Replicas)
		}
	})
}

// matched are the labels that a selector wants, none where there is no selector.
func matched(s *metav1.LabelSelector) map[string]string {
	if s == nil {
		return nil
	}
	return s.MatchLabels
}

func TestKubernetes_Ports(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		s := settingsOf(t, []byte(o.file(t, "config", "mete.yaml")))
		want := map[string]string{"http": port(t, s.Listen), "admin": port(t, s.AdminListen)}
		got := map[string]string{}
		for _, p := range o.container(t).Ports {
			got[p.Name] = strconv.Itoa(int(p.ContainerPort))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("ports of the container: %v, and it listens on %v", got, want)
		}
		for _, service := range o.services {
			for _, p := range service.Spec.Ports {
				if want[p.TargetPort.String()] == "" {
					t.Errorf("service %s is for the port %s, which no container has", service.Name, p.TargetPort.String())
				}
				if public := service.Spec.ClusterIP != corev1.ClusterIPNone; public && p.TargetPort.String() == "admin" {
					t.Errorf("service %s gives everybody the admin port", service.Name)
				}
			}
		}
		for _, rule := range o.network.Spec.Ingress {
			for _, p := range rule.Ports {
				if want[p.Port.String()] == "" {
					t.Errorf("the network policy is for the port %s, which no container has", p.Port)
				}
				if p.Port.String() == "admin" && len(rule.From) == 0 {
					t.Error("the network policy lets everybody at the admin port")
				}
			}
		}
		for _, p := range probes(o.container(t)) {
			if want[p.HTTPGet.Port.String()] == "" {
				t.Errorf("a probe asks at the port %s, which no container has", p.HTTPGet.Port.String())
			}
		}
		for _, p := range probes(o.container(t))[:2] {
			if p.HTTPGet.Port.String() != "admin" {
				t.Errorf("the container is restarted for what is at the port %s, which clients can fill", p.HTTPGet.Port.String())
			}
		}
	})
}

func probes(c corev1.Container) []*corev1.Probe {
	return []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe}
}

// TestKubernetes_Ending holds the grace of a pod against what the server takes to
// end, and its notice against what the readiness probe takes to fail.
func TestKubernetes_Ending(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		s := settingsOf(t, []byte(o.file(t, "config", "mete.yaml")))
		grace := time.Duration(*o.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		if least := s.ending(t) + 5*time.Second; grace < least {
			t.Errorf("terminationGracePeriodSeconds is %v, want at least %v", grace, least)
		}
		p := o.container(t).ReadinessProbe
		failing := time.Duration(p.PeriodSeconds*p.FailureThreshold+p.TimeoutSeconds) * time.Second
		if notice := duration(t, s.Timeouts.Notice); notice < failing+2*time.Second {
			t.Errorf("the notice is %v, and the readiness probe fails after up to %v", notice, failing)
		}
	})
}

func TestKubernetes_Memory(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		c := o.container(t)
		limit := c.Resources.Limits.Memory()
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if i < 0 {
			t.Fatal("there is no GOMEMLIMIT")
		}
		soft, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[i].Value, "B"))
		if err != nil {
			t.Fatal(err)
		}
		if share := soft.AsApproximateFloat64() / limit.AsApproximateFloat64(); share < 0.85 || share > 0.95 {
			t.Errorf("GOMEMLIMIT=%s is %.2f of the limit %s, want nine tenths", c.Env[i].Value, share, limit)
		}
		if request := c.Resources.Requests.Memory(); request.Cmp(*limit) != 0 {
			t.Errorf("memory: %s requested, and the limit is %s", request, limit)
		}
	})
}

// TestKubernetes_References checks that all referenced objects exist.
func TestKubernetes_References(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		secret := func(name, key string) {
			if name != secretName || !slices.Contains(secretKeys, key) {
				t.Errorf("key %s of secret %s: doc/deploy.md has %v in the secret %s", key, name, secretKeys, secretName)
			}
		}
		mounted := map[string]bool{}
		for _, m := range o.container(t).VolumeMounts {
			mounted[m.Name] = true
			if m.SubPath != "" || !m.ReadOnly {
				t.Errorf("%s: by subPath, or to be written to", m.MountPath)
			}
		}
		for _, v := range o.deployment.Spec.Template.Spec.Volumes {
			if !mounted[v.Name] {
				t.Errorf("volume %s is not mounted", v.Name)
			}
			switch {
			case v.ConfigMap != nil:
				if _, ok := o.configMaps[v.ConfigMap.Name]; !ok {
					t.Errorf("volume %s is of the config map %s, which is not there", v.Name, v.ConfigMap.Name)
				}
			case v.Secret != nil:
				for _, item := range v.Secret.Items {
					secret(v.Secret.SecretName, item.Key)
				}
			}
		}
		for _, e := range o.container(t).Env {
			if e.ValueFrom != nil {
				secret(e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
			}
		}
	})
}

// TestKubernetes_Environment wants each setting in one place: a variable of the container
// is a setting that its file does not have.
func TestKubernetes_Environment(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		text := o.file(t, "config", "mete.yaml")
		if strings.Contains(text, "${") {
			t.Errorf("mete.yaml refers to a variable, want a METE_ variable for the setting:\n%s", text)
		}
		var inFile map[string]any
		if err := yaml.Unmarshal([]byte(text), &inFile); err != nil {
			t.Fatal(err)
		}
		secret := map[string]string{}
		for _, e := range o.container(t).Env {
			name, isSetting := strings.CutPrefix(e.Name, "METE_")
			if _, ok := inFile[strings.ToLower(name)]; isSetting && ok {
				t.Errorf("%s overrides a setting of mete.yaml", e.Name)
			}
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				secret[e.Name] = e.ValueFrom.SecretKeyRef.Key
			}
		}
		if want := map[string]string{"METE_STORE": "store", "METE_HASH_KEY": "hash-key"}; !reflect.DeepEqual(secret, want) {
			t.Errorf("variables from the secret: %v, want %v", secret, want)
		}
	})
}

// TestKubernetes_Documented looks for the command that makes the secret.
func TestKubernetes_Documented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(meted.Root(t), "doc", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append([]string{"create secret generic " + secretName + " "}, secretKeys...) {
		if !strings.Contains(string(doc), want) {
			t.Errorf("doc/deploy.md has no %q", want)
		}
	}
}

// TestKubernetes_Restricted checks the pods against the restricted Pod Security Standard.
func TestKubernetes_Restricted(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		pod, c := o.deployment.Spec.Template.Spec, o.container(t)
		wants := map[string]bool{
			"runAsNonRoot":                  isTrue(pod.SecurityContext.RunAsNonRoot),
			"runAsUser is not 0":            *pod.SecurityContext.RunAsUser != 0,
			"seccompProfile RuntimeDefault": pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
			"no allowPrivilegeEscalation":   c.SecurityContext.AllowPrivilegeEscalation != nil && !*c.SecurityContext.AllowPrivilegeEscalation,
			"drop ALL":                      slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
			"no capabilities added":         len(c.SecurityContext.Capabilities.Add) == 0,
			"not privileged":                c.SecurityContext.Privileged == nil,
			"no host namespaces":            !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
			"no host ports":                 !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 }),
			"no host paths":                 !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil }),
			// The standard does not require these restrictions, but a server works with them.
			"readOnlyRootFilesystem": isTrue(c.SecurityContext.ReadOnlyRootFilesystem),
			"no token of the API":    pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken,
		}
		for what, holds := range wants {
			if !holds {
				t.Errorf("the pods lack: %s", what)
			}
		}
	})
}

func isTrue(b *bool) bool { return b != nil && *b }

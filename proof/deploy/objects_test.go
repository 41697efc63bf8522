// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// secretName is the secret that the operator creates, and secretKeys are its keys in doc/deploy.md.
const secretName = "mete"

var secretKeys = []string{"store", "hash-key", "admin-token", "metrics-token"}

// objects are the objects of a kustomization or of the chart, as Kubernetes types them.
type objects struct {
	deployment  appsv1.Deployment
	services    []corev1.Service
	configMaps  map[string]corev1.ConfigMap
	disruptions policyv1.PodDisruptionBudget
	network     networkingv1.NetworkPolicy
	scaler      *autoscalingv2.HorizontalPodAutoscaler // nil: there is none
	monitor     *monitoringv1.ServiceMonitor           // nil: there is none
}

// manifests are the kustomizations and the chart with some values. Each can be applied.
var manifests = map[string]func(*testing.T) objects{
	"base":             func(t *testing.T) objects { return build(t, "base") },
	"overlays/gateway": func(t *testing.T) objects { return build(t, "overlays/gateway") },
	"helm":             func(t *testing.T) objects { return renderChart(t, "mete", nil) },
	"helm/gateway":     renderGateway,
}

// build builds a kustomization and decodes the result into the types of Kubernetes. An unknown field is an
// error.
func build(t *testing.T, dir string) objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), example(t, "kubernetes", dir))
	if err != nil {
		t.Fatal(err)
	}
	o := objects{configMaps: map[string]corev1.ConfigMap{}}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if err := o.add(r.GetApiVersion()+" "+r.GetKind(), text); err != nil {
			t.Errorf("%s: %s %s: %v", dir, r.GetKind(), r.GetName(), err)
		}
	}
	return o
}

// add reads one object of a kind.
func (o *objects) add(kind string, text []byte) error {
	var service corev1.Service
	var config corev1.ConfigMap
	var monitor monitoringv1.ServiceMonitor
	into := map[string]any{
		"apps/v1 Deployment":                      &o.deployment,
		"v1 Service":                              &service,
		"v1 ConfigMap":                            &config,
		"policy/v1 PodDisruptionBudget":           &o.disruptions,
		"networking.k8s.io/v1 NetworkPolicy":      &o.network,
		"autoscaling/v2 HorizontalPodAutoscaler":  nil,
		"monitoring.coreos.com/v1 ServiceMonitor": &monitor,
	}
	if kind == "autoscaling/v2 HorizontalPodAutoscaler" {
		o.scaler = new(autoscalingv2.HorizontalPodAutoscaler)
		into[kind] = o.scaler
	}
	object, known := into[kind]
	if !known {
		return errUnknownKind
	}
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		return err
	}
	switch kind {
	case "v1 Service":
		o.services = append(o.services, service)
	case "v1 ConfigMap":
		o.configMaps[config.Name] = config
	case "monitoring.coreos.com/v1 ServiceMonitor":
		o.monitor = &monitor
	}
	return nil
}

// container is the only one of the pods.
func (o *objects) container(t *testing.T) corev1.Container {
	t.Helper()
	containers := o.deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("%d containers, want 1", len(containers))
	}
	return containers[0]
}

// file returns the contents of a file in a volume.
func (o *objects) file(t *testing.T, volume, name string) string {
	t.Helper()
	for _, v := range o.deployment.Spec.Template.Spec.Volumes {
		if v.Name == volume && v.ConfigMap != nil {
			if text, ok := o.configMaps[v.ConfigMap.Name].Data[name]; ok {
				return text
			}
		}
	}
	t.Fatalf("no volume %s with a file %s", volume, name)
	return ""
}

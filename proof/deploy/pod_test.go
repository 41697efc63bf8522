// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

// etc is where the pods find their files.
const etc = "/etc/mete"

// TestKubernetes_Pod runs the program as a pod would: with the arguments, the
// environment and the files of its manifest, under another root. Its probes must be
// answered.
func TestKubernetes_Pod(t *testing.T) {
	redis := proctest.StartRedis(t)
	each(t, func(t *testing.T, o objects) {
		secret := map[string]string{
			"store": "redis://" + redis.Addr + "?prefix=pod:&timeout=1m", "hash-key": "h", "admin-token": adminToken, "metrics-token": "another-" + adminToken,
		}
		if _, err := redis.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		c := o.container(t)
		o.mount(t, root, c, secret)
		for _, e := range c.Env {
			value := e.Value
			if e.ValueFrom != nil {
				value = secret[e.ValueFrom.SecretKeyRef.Key]
			}
			t.Setenv(e.Name, value)
		}
		if c.Args[0] != "serve" {
			t.Fatalf("arguments %q, want serve first", c.Args)
		}
		var flags []string
		for _, arg := range c.Args[1:] {
			flags = append(flags, strings.Replace(arg, etc, filepath.Join(root, etc), 1))
		}
		s := meted.Run(t, t.TempDir(), flags...)

		address := map[string]string{"http": s.URL, "admin": s.AdminURL}
		for _, p := range probes(c) {
			testkit.Until(t, "the probe of "+p.HTTPGet.Path, func() bool { // as a pod's: a slow store may be late
				return get(t, address[p.HTTPGet.Port.String()]+p.HTTPGet.Path, "") == 200
			})
		}
		for token, want := range map[string]int{secret["metrics-token"]: 200, secret["admin-token"]: 200, "": 401} {
			if status := get(t, s.AdminURL+"/metrics", token); status != want {
				t.Errorf("/metrics with the token %q: status %d, want %d", token, status, want)
			}
		}
		file := filepath.Join(root, etc, "secret", "admin-token") // as by kubectl exec in doc/deploy.md
		operate := exec.Command(meted.Program(t), "override", "set", "--token-file", file, "--server", s.AdminURL, "--action", "limit", "--rule", "per-key",
			"--match", "header:x-api-key=k1", "--rps", "100", "--burst", "200", "--expires", "1d", "--reason", "their launch day", "--author", "kim")
		if output, err := operate.CombinedOutput(); err != nil {
			t.Errorf("mete override set in the pod: %v\n%s", err, output)
		}
		if keys, err := redis.Do("DBSIZE"); err != nil || keys == "0" {
			t.Errorf("Redis has %s keys (%v), want the override in it", keys, err)
		}
		if err := s.Process.Stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// mount puts the files of a container's volumes below root, in the notice of
// whose end is nothing: the test need not wait for it.
func (o *objects) mount(t *testing.T, root string, c corev1.Container, secret map[string]string) {
	t.Helper()
	at := map[string]string{}
	for _, m := range c.VolumeMounts {
		at[m.Name] = filepath.Join(root, m.MountPath)
	}
	for _, v := range o.deployment.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			for name, text := range o.configMaps[v.ConfigMap.Name].Data {
				write(t, filepath.Join(at[v.Name], name), strings.Replace(text, "notice: 10s", "notice: 0s", 1))
			}
		}
		if v.Secret != nil {
			for _, item := range v.Secret.Items {
				write(t, filepath.Join(at[v.Name], item.Path), secret[item.Key]+"\n")
			}
		}
	}
}

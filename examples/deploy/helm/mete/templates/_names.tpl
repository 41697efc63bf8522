{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* The name of all objects: the release name if it contains "mete", else RELEASE-mete. */ -}}
{{- define "mete.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "mete.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "mete.labels" -}}
{{ include "mete.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{- define "mete.policyConfigMap" -}}
{{- .Values.policy.existingConfigMap | default (printf "%s-policy" (include "mete.name" .)) -}}
{{- end -}}

{{- /* The settings of the server. The schema rejects values for the settings in $own and for
admin_tokens. */ -}}
{{- define "mete.settings" -}}
{{- $own := dict "policy" "../policy/policy.yaml" "listen" "0.0.0.0:8080" "admin_listen" "0.0.0.0:8081" -}}
{{- if .Values.grpc.enabled -}}
{{- $_ := set $own "grpc_listen" (printf "0.0.0.0:%d" (int .Values.grpc.port)) -}}
{{- end -}}
{{- if .Values.resp.enabled -}}
{{- $_ := set $own "resp_listen" (printf "0.0.0.0:%d" (int .Values.resp.port)) -}}
{{- end -}}
{{- $tokens := list
  (dict "name" "admin" "role" "configure" "token_file" "../secret/admin-token")
  (dict "name" "prometheus" "role" "read" "token_file" "../secret/metrics-token") -}}
{{- toYaml (merge $own (dict "admin_tokens" $tokens) .Values.settings) -}}
{{- end -}}

{{- /* 90% of the memory limit, so that the garbage collector runs more often before the kernel
kills the process. */ -}}
{{- define "mete.memoryLimit" -}}
{{- $limit := .Values.resources.limits.memory -}}
{{- $mib := trimSuffix "Mi" $limit | int -}}
{{- if hasSuffix "Gi" $limit -}}
{{- $mib = trimSuffix "Gi" $limit | int | mul 1024 -}}
{{- end -}}
{{- printf "%dMiB" (div (mul $mib 9) 10) -}}
{{- end -}}

{{- /* HTTPS if the settings have a certificate for the address. */ -}}
{{- define "mete.scheme" -}}
{{- if get (get .Values.settings "tls" | default dict) "cert" }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "mete.adminScheme" -}}
{{- if get (get .Values.settings "admin_tls" | default dict) "cert" }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

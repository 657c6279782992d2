{{- define "nats.fullname" -}}
{{- printf "%s-nats" .Release.Name }}
{{- end }}

{{- define "nats.secret" -}}
{{- .Values.existingSecret | default (include "nats.fullname" .) }}
{{- end }}

{{- /* Whose passwords the Secret holds: users, and servers among themselves. */}}
{{- define "nats.passwords" -}}
node game rejects {{- if gt (int .Values.replicas) 1 }} route{{ end }}
{{- end }}

{{- /* A probe asks within the container, because nobody outside reaches the port of monitoring. */}}
{{- define "nats.healthy" -}}
exec:
  command: [wget, --quiet, --spider, "http://127.0.0.1:8222/healthz{{ . }}"]
{{- end }}

{{- define "nats.selector" -}}
app.kubernetes.io/name: nats
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: nats
{{- end }}

{{- define "nats.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "nats.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "nats.fullname" -}}
{{- printf "%s-nats" .Release.Name }}
{{- end }}

{{- define "nats.secret" -}}
{{- .Values.existingSecret | default (include "nats.fullname" .) }}
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

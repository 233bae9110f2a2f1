{{- define "parley.name" -}}
{{- if contains "parley" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-parley" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Labels that select pods; the argument is a list of the root and a component. */}}
{{- define "parley.selects" -}}
app.kubernetes.io/name: parley
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "parley.labels" -}}
{{ include "parley.selects" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{/* The same for brokers and NATS servers: nobody's user, nothing to write to but volumes. */}}
{{- define "parley.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false # they would be variables PARLEY_…, which set flags
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
What serve has as arguments: variables PARLEY_TLS_… would give a certificate to every command, and doctor is told
of all of them in NOTES.txt.
*/}}
{{- define "parley.args" -}}
{{- $args := .Values.args }}
{{- if .Values.tlsSecret }}{{ $args = concat (list "--tls-cert=/tls/tls.crt" "--tls-key=/tls/tls.key") $args }}{{ end }}
{{- if .Values.configSecret }}{{ $args = prepend $args "--config=/etc/parley/parley.yaml" }}{{ end }}
{{- range $args }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* The files of the NATS servers. */}}
{{- define "parley.natsFiles" -}}
{{- $name := include "parley.name" . -}}
nats.conf: |
  server_name: $POD_NAME
  listen: 0.0.0.0:4222
  http: 0.0.0.0:8222
  lame_duck_duration: "30s"
  cluster {
    name: parley, listen: 0.0.0.0:6222
    {{- if .Values.nats.routesSecret }}
    authorization: $ROUTES_LOGIN
    routes: $ROUTES
    {{- else }}
    routes: [{{ range $i, $n := until 3 }}{{ if $i }}, {{ end }}nats://{{ $name }}-nats-{{ $n }}.{{ $name }}-nats-peers:6222{{ end }}]
    {{- end }}
    ping_interval: "2s", ping_max: 2
    {{- if .Values.nats.tlsSecret }}
    tls { cert_file: "/nats-tls/tls.crt", key_file: "/nats-tls/tls.key", ca_file: "/nats-tls/ca.crt", timeout: 5 }
    {{- end }}
  }
  {{- if .Values.nats.tlsSecret }}
  tls { cert_file: "/nats-tls/tls.crt", key_file: "/nats-tls/tls.key", timeout: 5 }
  {{- end }}
  include ./parley.conf
parley.conf: |
  {{- regexReplaceAll "store_dir: *\"[^\"]*\"" .Values.nats.config "store_dir: \"/data\"" | nindent 2 }}
{{- end }}

{{/* The scheme of NATS's URLs. */}}
{{- define "parley.natsScheme" -}}
{{- if .Values.cluster | ternary .Values.nats.tlsSecret .Values.tlsSecret }}tls{{ else }}nats{{ end -}}
{{- end }}

{{- define "parley.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The argument is a list of the root and a component. */}}
{{- define "parley.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "parley.selects" . | nindent 8 }}
{{- end }}

{{/* The argument is a list of a volume's values and its size. */}}
{{- define "parley.claim" -}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: data}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with (index . 0).storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ index . 1 }}}}
{{- end }}

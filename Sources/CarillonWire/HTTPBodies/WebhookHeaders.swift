/// The headers of a signed call (Standard Webhooks).
package enum WebhookHeaders {
    package static let id = "webhook-id"
    package static let timestamp = "webhook-timestamp"
    package static let signature = "webhook-signature"
}

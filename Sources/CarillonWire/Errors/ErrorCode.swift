/// The error codes of the HTTP API, each with a status and a title. Codes are stable.
///
/// A problem document (RFC 9457) contains the code, and its `type` links to the entry in `docs/errors.md`.
package enum ErrorCode: String, CaseIterable, Sendable {
    // Errors in the messages of senders.
    case ttlMissing = "ttl_missing"
    case ttlInvalid = "ttl_invalid"
    case topicInvalid = "topic_invalid"
    case urgencyInvalid = "urgency_invalid"
    case encodingMissing = "encoding_missing"
    case encodingUnsupported = "encoding_unsupported"
    case encryptionHeadersInvalid = "encryption_headers_invalid"
    case vapidMissing = "vapid_missing"
    case vapidInvalid = "vapid_invalid"
    case tokenUnknown = "token_unknown"
    case tokenGone = "token_gone"
    case messageUnknown = "message_unknown"
    case messageFinal = "message_final"
    case idempotencyKeyInvalid = "idempotency_key_invalid"
    case idempotencyKeyReused = "idempotency_key_reused"
    case inboxFull = "inbox_full"
    case rateLimited = "rate_limited"
    case watchUnknown = "watch_unknown"
    case watchAddressInvalid = "watch_address_invalid"
    case watchAddressForbidden = "watch_address_forbidden"

    // Errors that can occur in any request.
    case bodyTooLarge = "body_too_large"
    case bodyIncomplete = "body_incomplete"
    case jsonInvalid = "json_invalid"
    case fieldMissing = "field_missing"
    case fieldInvalid = "field_invalid"
    case fieldUnknown = "field_unknown"
    case parameterInvalid = "parameter_invalid"
    case notFound = "not_found"
    case methodNotAllowed = "method_not_allowed"
    case requestInvalid = "request_invalid"
    case requestTimeout = "request_timeout"
    case headersTooLarge = "headers_too_large"
    case upgradeRequired = "upgrade_required"
    case originForbidden = "origin_forbidden"

    // Errors of authentication.
    case credentialMissing = "credential_missing"
    case credentialInvalid = "credential_invalid"
    case roleForbidden = "role_forbidden"
    case userTokenInvalid = "user_token_invalid"

    // Errors about apps, keys, devices and channels.
    case appExists = "app_exists"
    case appUnknown = "app_unknown"
    case keyUnknown = "key_unknown"
    case deviceUnknown = "device_unknown"
    case devicesTooMany = "devices_too_many"
    case channelUnknown = "channel_unknown"
    case channelsTooMany = "channels_too_many"
    case pushTokenInvalid = "push_token_invalid"
    case pushTokenContested = "push_token_contested"
    case parametersInvalid = "parameters_invalid"
    case watchesTooMany = "watches_too_many"
    case credentialsInvalid = "credentials_invalid"
    case credentialsUnknown = "credentials_unknown"
    case keyFileMissing = "key_file_missing"
    case userRulesInvalid = "user_rules_invalid"
    case userRulesUnknown = "user_rules_unknown"
    case usersNotConfigured = "users_not_configured"
    case approvalHookInvalid = "veto_invalid"
    case approvalHookUnknown = "veto_unknown"
    /// The approval hook of the app refused the request.
    case approvalRefused = "vetoed"

    // Items and item subscriptions.
    case itemRulesInvalid = "item_rules_invalid"
    case itemUnknown = "item_unknown"
    case itemClosed = "item_closed"
    case itemBusy = "item_busy"
    case itemTooLarge = "item_too_large"
    case itemsTooMany = "items_too_many"
    case modeForbidden = "mode_forbidden"
    case deviceSuspended = "device_suspended"
    case subscriptionUnknown = "subscription_unknown"
    case subscriptionFrozen = "subscription_frozen"
    case subscriptionsTooMany = "subscriptions_too_many"
    case triggerInvalid = "trigger_invalid"
    case triggerForbidden = "trigger_forbidden"
    case formatInvalid = "format_invalid"
    case formatEmpty = "format_empty"
    case formatTooLong = "format_too_long"
    case placeholderInvalid = "placeholder_invalid"
    case notificationTooLarge = "notification_too_large"

    // Audience updates.
    case parameterRulesInvalid = "parameter_rules_invalid"
    case audienceInvalid = "audience_invalid"
    case updateUnknown = "update_unknown"
    case updateFinal = "update_final"
    case updatesTooMany = "updates_too_many"
    case profilesTooMany = "profiles_too_many"
    case positionInvalid = "position_invalid"
    case protocolUnsupported = "protocol_unsupported"

    // Attachments.
    case attachmentUnknown = "attachment_unknown"
    case attachmentTooLarge = "attachment_too_large"
    case quotaExceeded = "quota_exceeded"
    case uploadsTooMany = "uploads_too_many"
    case uploadHeadersInvalid = "upload_headers_invalid"
    case uploadLengthMissing = "upload_length_missing"
    case uploadLengthInconsistent = "upload_length_inconsistent"
    case uploadOffsetMismatch = "upload_offset_mismatch"
    case uploadTypeInvalid = "upload_type_invalid"
    case uploadCompleted = "upload_completed"
    case uploadTakenOver = "upload_taken_over"
    case digestMismatch = "digest_mismatch"
    case rangeInvalid = "range_invalid"
    case attachmentStorageFull = "attachment_storage_full"

    // Services between apps.
    case applicationNotFound = "application_not_found"
    case serviceNotFound = "service_not_found"
    case serviceVersionNotFound = "service_version_not_found"
    case serviceMethodNotFound = "service_method_not_found"
    case serviceIDInvalid = "service_id_invalid"
    case providerSuspended = "provider_suspended"
    case callForbidden = "call_forbidden"
    case providerKeyMissing = "provider_key_missing"
    case providerKeyChanged = "provider_key_changed"
    case userMismatch = "user_mismatch"
    case deadlineExceeded = "deadline_exceeded"
    case requestTooLarge = "request_too_large"
    case requestUnknown = "request_unknown"
    case requestFinished = "request_finished"
    case alreadyDelivered = "already_delivered"

    // Temporary failures of the server.
    case userKeysUnavailable = "user_keys_unavailable"
    case approvalHookUnavailable = "veto_unavailable"
    case storageFull = "storage_full"
    case storageUnavailable = "storage_unavailable"
    case listenerClosed = "listener_closed"
    case stopping = "stopping"
    case overloaded = "overloaded"
    case notFinished = "not_finished"
    case internalError = "internal_error"

    package var status: Int {
        switch self {
        case .ttlMissing, .ttlInvalid, .topicInvalid, .urgencyInvalid, .encodingMissing, .encodingUnsupported,
            .encryptionHeadersInvalid, .idempotencyKeyInvalid, .bodyIncomplete, .jsonInvalid, .fieldMissing,
            .fieldInvalid, .fieldUnknown, .parameterInvalid, .requestInvalid, .watchAddressInvalid, .pushTokenInvalid,
            .parametersInvalid, .credentialsInvalid, .userRulesInvalid, .approvalHookInvalid, .itemRulesInvalid,
            .triggerInvalid,
            .formatInvalid,
            .formatEmpty, .formatTooLong, .placeholderInvalid, .notificationTooLarge, .parameterRulesInvalid,
            .audienceInvalid, .positionInvalid, .protocolUnsupported, .uploadHeadersInvalid, .uploadLengthInconsistent,
            .digestMismatch, .serviceIDInvalid:
            400
        case .vapidMissing, .credentialMissing, .credentialInvalid, .userTokenInvalid: 401
        case .vapidInvalid, .roleForbidden, .watchAddressForbidden, .originForbidden, .itemClosed,
            .modeForbidden, .triggerForbidden, .approvalRefused, .callForbidden, .userMismatch:
            403
        case .tokenUnknown, .messageUnknown, .notFound, .appUnknown, .keyUnknown, .deviceUnknown, .channelUnknown,
            .watchUnknown, .credentialsUnknown, .userRulesUnknown, .approvalHookUnknown, .itemUnknown, .subscriptionUnknown,
            .updateUnknown, .attachmentUnknown, .applicationNotFound, .serviceNotFound, .serviceVersionNotFound,
            .serviceMethodNotFound, .requestUnknown:
            404
        case .methodNotAllowed: 405
        case .requestTimeout: 408
        case .appExists, .devicesTooMany, .channelsTooMany, .watchesTooMany, .messageFinal, .pushTokenContested,
            .keyFileMissing, .usersNotConfigured, .itemsTooMany, .deviceSuspended, .subscriptionFrozen,
            .subscriptionsTooMany, .updateFinal, .updatesTooMany, .profilesTooMany,
            .quotaExceeded, .uploadOffsetMismatch, .uploadCompleted, .uploadTakenOver, .providerKeyMissing,
            .providerKeyChanged, .requestFinished, .alreadyDelivered, .providerSuspended:
            409
        case .tokenGone: 410
        case .uploadLengthMissing: 411
        case .bodyTooLarge, .itemTooLarge, .attachmentTooLarge, .requestTooLarge: 413
        case .uploadTypeInvalid: 415
        case .rangeInvalid: 416
        case .idempotencyKeyReused: 422
        case .upgradeRequired: 426
        case .inboxFull, .rateLimited, .itemBusy, .uploadsTooMany: 429
        case .headersTooLarge: 431
        case .internalError: 500
        case .storageFull, .storageUnavailable, .listenerClosed, .stopping, .overloaded, .notFinished, .userKeysUnavailable,
            .approvalHookUnavailable:
            503
        case .deadlineExceeded: 504
        case .attachmentStorageFull: 507
        }
    }

    /// The title of the error. It is the same for each occurrence (RFC 9457 section 3.1.3).
    package var title: String {
        switch self {
        case .ttlMissing: "The TTL header is missing"
        case .ttlInvalid: "The TTL is not a number of seconds"
        case .topicInvalid: "The Topic is not valid"
        case .urgencyInvalid: "The Urgency is not valid"
        case .encodingMissing: "A body needs a Content-Encoding"
        case .encodingUnsupported: "The Content-Encoding is not supported"
        case .encryptionHeadersInvalid: "The encryption headers are not valid"
        case .vapidMissing: "This channel wants VAPID credentials"
        case .vapidInvalid: "The VAPID credentials are not valid"
        case .tokenUnknown: "No such channel token"
        case .tokenGone: "The channel is closed"
        case .messageUnknown: "No such message"
        case .messageFinal: "The message has its outcome"
        case .idempotencyKeyInvalid: "The Idempotency-Key is not valid"
        case .idempotencyKeyReused: "The Idempotency-Key was used for another message"
        case .inboxFull: "The device's inbox is full"
        case .rateLimited: "Too much at once"
        case .watchUnknown: "The token has no watch"
        case .watchAddressInvalid: "The address cannot be called"
        case .watchAddressForbidden: "The address may not be called"
        case .bodyTooLarge: "The body is too large"
        case .bodyIncomplete: "The body ended early"
        case .jsonInvalid: "The body is not valid JSON"
        case .fieldMissing: "A field is missing"
        case .fieldInvalid: "A field has a wrong value"
        case .fieldUnknown: "A field is unknown"
        case .parameterInvalid: "A query parameter is unknown, repeated or has a wrong value"
        case .notFound: "Nothing is here"
        case .methodNotAllowed: "The method is not allowed here"
        case .requestInvalid: "The request is not valid HTTP"
        case .requestTimeout: "The request came too slowly"
        case .headersTooLarge: "The head of the request is too large"
        case .upgradeRequired: "This address speaks WebSocket"
        case .originForbidden: "Pages of this origin may not connect"
        case .credentialMissing: "A bearer secret is missing"
        case .credentialInvalid: "The bearer secret is not valid"
        case .roleForbidden: "The key's role does not allow this"
        case .appExists: "The app exists already"
        case .appUnknown: "No such app"
        case .keyUnknown: "No such key"
        case .deviceUnknown: "No such device"
        case .devicesTooMany: "The app has too many devices"
        case .channelUnknown: "No such channel"
        case .channelsTooMany: "The device has too many channels"
        case .pushTokenInvalid: "The push token is not valid"
        case .pushTokenContested: "The push token goes to and fro"
        case .parametersInvalid: "The device's parameters are not valid"
        case .watchesTooMany: "There are too many watches"
        case .credentialsInvalid: "The push credentials cannot be used"
        case .credentialsUnknown: "No such push credentials"
        case .keyFileMissing: "The server has no key file"
        case .userTokenInvalid: "The user token is not valid"
        case .userRulesInvalid: "The rules for users cannot be used"
        case .userRulesUnknown: "The app has no rules for users"
        case .usersNotConfigured: "The app has no users"
        case .approvalHookInvalid: "The address of the approval hook cannot be used"
        case .approvalHookUnknown: "The app has no approval hook"
        case .approvalRefused: "The app's approval hook refused the request"
        case .approvalHookUnavailable: "The app's approval hook did not answer"
        case .userKeysUnavailable: "The keys of the app's users cannot be had now"
        case .itemRulesInvalid: "The rules for items cannot be used"
        case .itemUnknown: "No such item"
        case .itemClosed: "The item is not open to devices"
        case .itemBusy: "The item has too many updates waiting"
        case .itemTooLarge: "The item is too large"
        case .itemsTooMany: "The app has too many items"
        case .modeForbidden: "The item has another mode"
        case .deviceSuspended: "The device is suspended"
        case .subscriptionUnknown: "No such subscription"
        case .subscriptionFrozen: "The subscription watches something else"
        case .subscriptionsTooMany: "There are too many subscriptions"
        case .triggerInvalid: "The trigger is not valid"
        case .triggerForbidden: "The app does not allow the trigger"
        case .formatInvalid: "The notification's format is not valid"
        case .formatEmpty: "The notification's format is empty"
        case .formatTooLong: "The notification's format is too long"
        case .placeholderInvalid: "A placeholder is not valid"
        case .notificationTooLarge: "The notification is too large"
        case .parameterRulesInvalid: "The parameters cannot be declared so"
        case .audienceInvalid: "The audience is not valid"
        case .updateUnknown: "No such update"
        case .updateFinal: "The update came to its end"
        case .updatesTooMany: "The app has too many updates"
        case .profilesTooMany: "The device has too many profiles"
        case .positionInvalid: "The position is not one of this device"
        case .protocolUnsupported: "The server does not speak this version"
        case .attachmentUnknown: "No such attachment"
        case .attachmentTooLarge: "The attachment is too large"
        case .quotaExceeded: "The allowance is used up"
        case .uploadsTooMany: "Too many uploads are not finished"
        case .uploadHeadersInvalid: "A header of the upload is not valid"
        case .uploadLengthMissing: "The length of the upload is missing"
        case .uploadLengthInconsistent: "The lengths of the upload differ"
        case .uploadOffsetMismatch: "The upload is at another offset"
        case .uploadTypeInvalid: "A part of an upload has another media type"
        case .uploadCompleted: "The upload is whole"
        case .uploadTakenOver: "A newer request works on the upload"
        case .digestMismatch: "The bytes are not what their digest says"
        case .rangeInvalid: "The range lies beyond the end"
        case .attachmentStorageFull: "The disk has no room for attachments"
        case .applicationNotFound: "No such provider"
        case .serviceNotFound: "The provider does not have the service"
        case .serviceVersionNotFound: "The provider does not have the version of the service"
        case .serviceMethodNotFound: "The service has no such method"
        case .serviceIDInvalid: "The id or the version of a service is not valid"
        case .providerSuspended: "The provider is not connected"
        case .callForbidden: "The device may call nobody"
        case .providerKeyMissing: "The provider has no key"
        case .providerKeyChanged: "The provider has another key"
        case .userMismatch: "The device belongs to another user"
        case .deadlineExceeded: "The request's time is over"
        case .requestTooLarge: "The request is too large"
        case .requestUnknown: "No such request"
        case .requestFinished: "The request has its result"
        case .alreadyDelivered: "The request was delivered before"
        case .storageFull: "The disk is full"
        case .storageUnavailable: "The store cannot be used now"
        case .listenerClosed: "A listener of the server is closed"
        case .stopping: "The server is stopping"
        case .overloaded: "The server is full"
        case .notFinished: "The server was not done in time"
        case .internalError: "The server met a fault"
        }
    }

    /// The status of a `register` frame that refuses a channel. For clients of Mozilla's protocol, 400 is a bad request that
    /// never succeeds, and 500 is a failure that can be temporary.
    package var registrationStatus: Int {
        switch self {
        // The request can succeed after another channel is closed or another device is removed.
        case .channelsTooMany, .devicesTooMany: 500
        default: isRetryable ? 500 : 400
        }
    }

    /// Whether the same request can succeed later without a change.
    package var isRetryable: Bool {
        switch self {
        case .requestTimeout, .inboxFull, .rateLimited, .internalError, .storageFull, .storageUnavailable, .listenerClosed,
            .stopping, .overloaded, .notFinished, .pushTokenContested, .userKeysUnavailable, .approvalHookUnavailable,
            .itemBusy,
            .deviceSuspended,
            .uploadsTooMany, .attachmentStorageFull, .uploadTakenOver:
            true
        default: false
        }
    }
}

/// The result that a device reports for an envelope, in the codes of Mozilla's push protocol.
package enum ResultCode {
    /// `ack`: the app received the envelope.
    package static let delivered = 100
    /// `ack`: the envelope was received, but could not be decrypted.
    package static let undecryptable = 101
    /// `ack`: the envelope was received, but not delivered to the app.
    package static let notDelivered = 102
    /// `nack`: the app's handler failed.
    package static let handlerFailed = 301
    /// `nack`: the app's promise was rejected.
    package static let promiseRejected = 302
    /// `nack`: another reason.
    package static let other = 303
}

/// The codes of a channel's `error` event, in the ranges of the Push Channel.
package enum ChannelErrorCode {
    /// The push service is not connected.
    package static let notConnected = 0
    /// The range of faults in the client library.
    package static let client = 200...499
    /// The range of faults of the server.
    package static let server = 500...599
    /// The client library reports this code if its stored state cannot be read or written.
    package static let clientStorage = 200
    /// The client library reports this code if the server no longer knows its device.
    package static let deviceUnknown = 201
    /// The client library reports this code if the server refused to register the channel.
    package static let registrationRefused = 202
    /// The server sends this code if the device belongs to no user, or to another user than at the registration of the channel.
    package static let userChanged = 203
}

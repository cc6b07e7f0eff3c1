/// What a device says of an envelope, in the numbers of Mozilla's push protocol.
package enum ResultCode {
    /// `ack`: the app has it.
    package static let delivered = 100
    /// `ack`: it came, and could not be decrypted.
    package static let undecryptable = 101
    /// `ack`: it came, and was not given to the app.
    package static let notDelivered = 102
    /// `nack`: the app's handler failed.
    package static let handlerFailed = 301
    /// `nack`: the app's promise was rejected.
    package static let promiseRejected = 302
    /// `nack`: another reason.
    package static let other = 303
}

/// The numbers of a channel's `error` event, in the ranges that the Push Channel knows.
package enum ChannelErrorCode {
    /// The push service is not connected.
    package static let notConnected = 0
    /// The range of faults inside the client library.
    package static let client = 200...499
    /// The range of faults of the server.
    package static let server = 500...599
    /// What the client library says when its durable state cannot be read or written.
    package static let clientStorage = 200
    /// What the client library says when its device is not known to the server any more.
    package static let deviceUnknown = 201
    /// What the client library says when the server refused to register the channel.
    package static let registrationRefused = 202
    /// What the server says when the device belongs to another user than the channel was opened for, or to none.
    package static let userChanged = 203
}

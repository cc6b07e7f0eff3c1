import CarillonBasics
package import CarillonWire

/// Why a message cannot be decrypted.
package enum DecryptionFault: String, Error, CaseIterable {
    /// The message is not encrypted, but its channel was opened for encrypted messages.
    case notEncrypted
    /// The salt, the record size or the sender's key is missing or malformed.
    case parametersInvalid
    /// The message is truncated.
    case cut
    /// The message was changed on the way, or was encrypted with another key.
    case notAuthentic
    /// The decrypted content has an invalid padding.
    case paddingInvalid
}

extension SubscriptionKeys {
    /// Decrypts the body of a message.
    package func decrypt(_ body: [UInt8], _ coding: ContentCoding) throws(DecryptionFault) -> [UInt8] {
        switch coding.name {
        case .identity: throw .notEncrypted
        case .aes128gcm: try decryptAES128GCM(body)
        case .aesgcm: try decryptAESGCM(body, coding)
        }
    }

    // MARK: aes128gcm

    /// Decrypts the format of RFC 8188 section 2: the salt, the record size, the length and the bytes of the sender's key,
    /// then records. Only the last record may be shorter than the others. RFC 8291 requires a single record; messages of
    /// several records are decrypted too.
    private func decryptAES128GCM(_ body: [UInt8]) throws(DecryptionFault) -> [UInt8] {
        guard body.count > 20 else { throw .cut }
        let recordSize = body[16..<20].reduce(0) { $0 << 8 | Int($1) }
        let keyBytes = Int(body[20])
        guard recordSize >= 18, keyBytes == 65 else { throw .parametersInvalid }
        guard body.count > 21 + keyBytes else { throw .cut }
        guard let key = contentKey(.aes128gcm, sender: Array(body[21..<86]), salt: Array(body[..<16])) else {
            throw .parametersInvalid
        }
        var content: [UInt8] = []
        var rest = body[86...]
        var number: UInt64 = 0
        while !rest.isEmpty {
            let record = rest.prefix(recordSize)
            rest = rest.dropFirst(recordSize)
            guard record.count > ContentKey.tagBytes else { throw .cut }
            guard let padded = key.open(record, number: number) else { throw .notAuthentic }
            content += try Self.unpadded(padded, isLast: rest.isEmpty)
            number += 1
        }
        return content
    }

    /// Removes the padding of RFC 8188 section 2: the byte 2 after the content of the last record, the byte 1 after the
    /// content of any other, then zeros.
    private static func unpadded(_ record: [UInt8], isLast: Bool) throws(DecryptionFault) -> ArraySlice<UInt8> {
        guard let delimiter = record.lastIndex(where: { $0 != 0 }) else { throw .paddingInvalid }
        switch (record[delimiter], isLast) {
        case (2, true), (1, false): return record[..<delimiter]
        case (1, true): throw .cut
        default: throw .paddingInvalid
        }
    }

    // MARK: aesgcm

    /// Decrypts the format of draft-ietf-httpbis-encryption-encoding-03 section 2: the record size does not include the tag,
    /// the padding is before the content, and the last record is shorter than the others.
    private func decryptAESGCM(_ body: [UInt8], _ coding: ContentCoding) throws(DecryptionFault) -> [UInt8] {
        let parameters = HeaderParameters(coding.encryption ?? "")
        let recordSize = parameters["rs"].map { Int($0) ?? 0 } ?? 4096
        guard let salt = parameters["salt"].flatMap({ Base64URL.decode($0) }), salt.count == ContentKey.saltBytes,
            let sender = HeaderParameters(coding.cryptoKey ?? "")["dh"].flatMap({ Base64URL.decode($0) }),
            (3...1 << 20).contains(recordSize), let key = contentKey(.aesgcm, sender: sender, salt: salt)
        else { throw .parametersInvalid }
        var content: [UInt8] = []
        var rest = body[...]
        var number: UInt64 = 0
        while true {
            let record = rest.prefix(recordSize + ContentKey.tagBytes)
            rest = rest.dropFirst(record.count)
            guard record.count > ContentKey.tagBytes + 1 else { throw .cut }
            guard let padded = key.open(record, number: number) else { throw .notAuthentic }
            let padding = Int(padded[0]) << 8 | Int(padded[1])
            guard padded.count >= 2 + padding, padded[2..<2 + padding].allSatisfy({ $0 == 0 }) else {
                throw .paddingInvalid
            }
            content += padded[(2 + padding)...]
            number += 1
            if record.count < recordSize + ContentKey.tagBytes { return content }
        }
    }
}

public import KithCrypto

/// What a person remembers or a file holds, in guarded memory.
public typealias Passphrase = KithCrypto.Passphrase

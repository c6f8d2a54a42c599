#import "KithUbiquitousKeyValueStore.h"
#import "KithPropertyList.h"
#include <math.h>

/* As many containers may lie within each other. */
static const unsigned maximumDepth = 64;

static NSString *
text(const char *bytes, size_t length)
{
  return AUTORELEASE([[NSString alloc] initWithBytes: bytes
                                              length: length
                                            encoding: NSUTF8StringEncoding]);
}

id
KithObject(const kith_value *value)
{
  size_t count = kith_value_count(value), length, index;
  const void *bytes;

  switch (kith_value_type(value))
    {
      case KITH_BOOL:
        return [NSNumber numberWithBool: kith_value_get_bool(value, false)];
      case KITH_INTEGER:
        return [NSNumber numberWithLongLong: kith_value_get_integer(value, 0)];
      case KITH_DOUBLE:
        return [NSNumber numberWithDouble: kith_value_get_double(value, 0)];
      case KITH_DATE:
        return [NSDate dateWithTimeIntervalSinceReferenceDate: kith_value_get_date(value, 0)];
      case KITH_STRING:
        bytes = kith_value_get_string(value, &length);
        return text(bytes, length);
      case KITH_DATA:
        bytes = kith_value_get_data(value, &length);
        return [NSData dataWithBytes: bytes length: length];
      case KITH_ARRAY:
        {
          NSMutableArray *array = [NSMutableArray arrayWithCapacity: count];

          for (index = 0; index < count; index++)
            {
              [array addObject: KithObject(kith_value_at(value, index))];
            }
          return array;
        }
      case KITH_DICTIONARY:
        {
          NSMutableDictionary *members = [NSMutableDictionary dictionaryWithCapacity: count];

          for (index = 0; index < count; index++)
            {
              const char *name = kith_value_name_at(value, index, &length);

              [members setObject: KithObject(kith_value_at(value, index))
                          forKey: text(name, length)];
            }
          return members;
        }
      case KITH_NONE:
        break;
    }
  return nil;
}

/* GNUstep has one object each for YES and NO. Their type is that of a C character, as other numbers
   may have it. */
static BOOL
isBool(NSNumber *number)
{
  return number == [NSNumber numberWithBool: YES] || number == [NSNumber numberWithBool: NO];
}

static kith_value *
valueOfNumber(NSNumber *number, NSString **problem)
{
  if (isBool(number))
    {
      return kith_value_new_bool([number boolValue]);
    }
  switch (*[number objCType])
    {
      case 'd':
      case 'f':
        return kith_value_new_double([number doubleValue]);
      case 'Q':
        if ([number unsignedLongLongValue] > (unsigned long long)INT64_MAX)
          {
            *problem = @"the integer is above 9223372036854775807";
            return NULL;
          }
    }
  return kith_value_new_integer([number longLongValue]);
}

/* Frees an error of the library, and makes its message the problem. */
static void
refuse(kith_error *error, NSString **problem)
{
  if (error != NULL)
    {
      *problem = [NSString stringWithUTF8String: kith_error_message(error)];
      kith_free(error);
    }
}

static kith_value *valueAtDepth(id object, unsigned depth, NSString **problem);

static kith_value *
valueOfArray(NSArray *array, unsigned depth, NSString **problem)
{
  kith_value *value = kith_value_new_array();

  for (id element in array)
    {
      kith_value *made = valueAtDepth(element, depth, problem);
      kith_error *error = NULL;

      if (made == NULL || !kith_value_append(value, made, &error))
        {
          refuse(error, problem);
          kith_free(made);
          kith_free(value);
          return NULL;
        }
      kith_free(made);
    }
  return value;
}

static kith_value *
valueOfDictionary(NSDictionary *members, unsigned depth, NSString **problem)
{
  kith_value *value = kith_value_new_dictionary();

  for (id name in members)
    {
      NSData *bytes = nil;
      kith_value *made = NULL;
      kith_error *error = NULL;

      if (![name isKindOfClass: [NSString class]])
        {
          *problem = @"a dictionary's key is no string";
        }
      else if ((bytes = [name dataUsingEncoding: NSUTF8StringEncoding]) == nil)
        {
          *problem = @"a dictionary's key is not Unicode";
        }
      else
        {
          made = valueAtDepth([members objectForKey: name], depth, problem);
        }
      if (made == NULL
        || !kith_value_put(value, [bytes bytes] ?: "", [bytes length], made, &error))
        {
          refuse(error, problem);
          kith_free(made);
          kith_free(value);
          return NULL;
        }
      kith_free(made);
    }
  return value;
}

static kith_value *
valueAtDepth(id object, unsigned depth, NSString **problem)
{
  BOOL isArray = [object isKindOfClass: [NSArray class]];
  BOOL isDictionary = [object isKindOfClass: [NSDictionary class]];
  NSData *bytes;

  if ((isArray || isDictionary) && depth >= maximumDepth)
    {
      *problem = @"more than 64 containers lie within each other";
      return NULL;
    }
  if (isArray)
    {
      return valueOfArray(object, depth + 1, problem);
    }
  if (isDictionary)
    {
      return valueOfDictionary(object, depth + 1, problem);
    }
  if ([object isKindOfClass: [NSNumber class]])
    {
      return valueOfNumber(object, problem);
    }
  if ([object isKindOfClass: [NSString class]])
    {
      if ((bytes = [object dataUsingEncoding: NSUTF8StringEncoding]) == nil)
        {
          *problem = @"a string is not Unicode";
          return NULL;
        }
      return kith_value_new_string([bytes bytes] ?: "", [bytes length]);
    }
  if ([object isKindOfClass: [NSData class]])
    {
      return kith_value_new_data([object bytes], [object length]);
    }
  if ([object isKindOfClass: [NSDate class]])
    {
      return kith_value_new_date([object timeIntervalSinceReferenceDate]);
    }
  *problem = [NSString stringWithFormat: @"property lists hold no %@",
    NSStringFromClass([object class])];
  return NULL;
}

kith_value *
KithValue(id object, NSString **problem)
{
  return valueAtDepth(object, 0, problem);
}

/* The shortest text of the same number, whole ones without a fraction. */
static NSString *
textOfDouble(double number)
{
  kith_value *value;
  NSString *json;

  if (isnan(number))
    {
      return @"nan";
    }
  if (isinf(number))
    {
      return number > 0 ? @"inf" : @"-inf";
    }
  value = kith_value_new_double(number);
  json = [NSString stringWithUTF8String: kith_value_json(value, NULL)];
  kith_free(value);
  return [json hasSuffix: @".0"] ? [json substringToIndex: [json length] - 2] : json;
}

NSString *
KithString(id object)
{
  if ([object isKindOfClass: [NSString class]])
    {
      return object;
    }
  if (![object isKindOfClass: [NSNumber class]])
    {
      return nil;
    }
  if (isBool(object))
    {
      return [object boolValue] ? @"1" : @"0";
    }
  switch (*[object objCType])
    {
      case 'd':
      case 'f':
        return textOfDouble([object doubleValue]);
    }
  return [object stringValue];
}

long long
KithLongLong(id object)
{
  if ([object isKindOfClass: [NSString class]])
    {
      return [object longLongValue];
    }
  if (![object isKindOfClass: [NSNumber class]])
    {
      return 0;
    }
  switch (*[object objCType])
    {
      case 'd':
      case 'f':
        {
          double number = [object doubleValue];

          // 2^63 itself is too large.
          return isnan(number) ? 0
            : number >= 0x1p63 ? INT64_MAX : number <= -0x1p63 ? INT64_MIN : (long long)number;
        }
    }
  return [object longLongValue];
}

double
KithDouble(id object)
{
  BOOL hasNumber = [object isKindOfClass: [NSNumber class]] || [object isKindOfClass: [NSString class]];

  return hasNumber ? [object doubleValue] : 0;
}

BOOL
KithBool(id object)
{
  BOOL hasBool = [object isKindOfClass: [NSNumber class]] || [object isKindOfClass: [NSString class]];

  return hasBool && [object boolValue];
}
